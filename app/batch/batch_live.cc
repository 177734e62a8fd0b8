#include "app/batch/batch_live.h"

#include <cmath>
#include <utility>

#include "app/terminal/signals.h"

namespace vllm::app {
namespace {

constexpr std::chrono::milliseconds kPublishInterval{200};

bool IsDone(const BatchProgress& progress) {
  return progress.num_rows && progress.num_done >= std::llround(*progress.num_rows);
}

}  // namespace

BatchLive::BatchLive(LiveSource& source, std::string input, std::string output, bool shows_view)
    : source_(source),
      input_(std::move(input)),
      output_(std::move(output)),
      start_(std::chrono::steady_clock::now()),
      eta_(start_) {
  Publish({}, start_);
  if (!shows_view) return;
  connection_.emplace(source_);
  LiveViewerOptions options;
  options.leave_question = "stop the batch? rows that are done are kept. y/n";
  viewer_.emplace(*connection_, std::move(options));
}

void BatchLive::AddError(int64_t line, std::string_view message) {
  errors_.push_back({line, std::string(message)});
  if (errors_.size() > LiveBatch::kMaxErrors) errors_.pop_front();
}

void BatchLive::Publish(const BatchProgress& progress, SteadyTime now) {
  due_ = now + kPublishInterval;
  const SchedulerStats& stats = progress.stats;
  // The interactive requests are those of a chat on the same engine.
  const int64_t num_processed_tokens =
      stats.num_prompt_tokens + stats.num_generation_tokens + stats.prefix_cache.hits - stats.num_interactive_tokens;
  eta_.Update(
      now, {progress.num_done - progress.num_skipped,
            progress.num_rows.value_or(0) - static_cast<double>(progress.num_skipped),
            progress.num_prompt_tokens + progress.num_generation_tokens, num_processed_tokens, stats.admission_paused});
  LiveBatch batch;
  batch.input = input_;
  batch.output = output_;
  batch.num_done = progress.num_done;
  batch.num_failed = progress.num_failed;
  if (progress.num_rows) batch.num_rows = std::llround(*progress.num_rows);
  batch.num_rows_is_estimate = progress.num_rows_is_estimate;
  batch.num_prompt_tokens = progress.num_prompt_tokens;
  batch.num_generation_tokens = progress.num_generation_tokens;
  batch.elapsed = now - start_;
  if (!IsDone(progress)) batch.time_left = eta_.time_left();
  batch.errors.assign(errors_.begin(), errors_.end());
  source_.SetBatch(std::move(batch));
}

bool BatchLive::Update(const BatchProgress& progress) {
  const SteadyTime now = std::chrono::steady_clock::now();
  // The last rows of a batch behind a chat may be followed by no other call.
  if (now >= due_ || IsDone(progress)) Publish(progress, now);
  if (!viewer_) return true;
  try {
    if (viewer_->Update()) return true;
    signal_number_ = viewer_->signal_number();
  } catch (const Interrupted& interrupted) {
    signal_number_ = interrupted.signal_number();
  }
  return false;
}

}  // namespace vllm::app
