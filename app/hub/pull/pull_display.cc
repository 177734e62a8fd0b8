#include "app/hub/pull/pull_display.h"

#include <utility>

#include "app/output/duration_text.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"

namespace vllm::app {

void TransferRate::Add(Clock::time_point now, int64_t bytes) {
  if (!samples_.empty() && bytes < samples_.back().bytes) samples_.clear();
  samples_.push_back({now, bytes});
  // The first sample stays older than the window, so that the rate covers all of it.
  while (samples_.size() > 2 && now - samples_[1].time >= kWindow) samples_.pop_front();
}

std::optional<double> TransferRate::BytesPerSecond() const {
  if (samples_.empty()) return std::nullopt;
  const std::chrono::duration<double> time = samples_.back().time - samples_.front().time;
  if (time < std::chrono::seconds(1)) return std::nullopt;
  return static_cast<double>(samples_.back().bytes - samples_.front().bytes) / time.count();
}

std::string PullProgressText(const PullProgress& progress, std::optional<double> bytes_per_second) {
  if (progress.is_verifying) return "verifying " + SizeText(progress.total_bytes);
  // Rounded down, because 100 % would look finished.
  const int64_t percent = progress.total_bytes > 0
                              ? static_cast<int64_t>(100.0 * static_cast<double>(progress.done_bytes) /
                                                     static_cast<double>(progress.total_bytes))
                              : 100;
  std::string text =
      std::to_string(percent) + " %, " + SizeText(progress.done_bytes) + " of " + SizeText(progress.total_bytes);
  if (!bytes_per_second) return text;
  text += ", " + SizeText(static_cast<int64_t>(*bytes_per_second)) + "/s";
  const double left = static_cast<double>(progress.total_bytes - progress.done_bytes) / *bytes_per_second;
  // At a standstill there is no estimate.
  constexpr double kMaxSeconds = 7.0 * 24 * 3600;
  if (*bytes_per_second < 1.0 || left > kMaxSeconds) return text;
  return text + ", " + DurationText(std::chrono::milliseconds(static_cast<int64_t>(1000.0 * left))) + " left";
}

PullDisplay::PullDisplay(std::string name)
    : name_(std::move(name)), plain_due_(std::chrono::steady_clock::now() + kPlainInterval) {}

void PullDisplay::OnProgress(const PullProgress& progress) {
  const auto now = std::chrono::steady_clock::now();
  rate_.Add(now, progress.done_bytes);
  received_bytes_ = progress.received_bytes;
  if (line_.enabled()) {
    if (line_.IsDue()) line_.Show(name_ + ": " + PullProgressText(progress, rate_.BytesPerSecond()));
    return;
  }
  if (now < plain_due_) return;
  plain_due_ = now + kPlainInterval;
  PrintStatus("pull: " + name_ + ": " + PullProgressText(progress, rate_.BytesPerSecond()));
}

void PullDisplay::OnNote(const std::string& text) {
  line_.Clear();
  PrintStatus("pull: " + name_ + ": " + text);
}

}  // namespace vllm::app
