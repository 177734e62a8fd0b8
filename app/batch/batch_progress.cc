#include "app/batch/batch_progress.h"

#include <unistd.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "app/output/request_stats.h"
#include "app/terminal/output_stream.h"

namespace vllm::app {

BatchProgressDisplay::BatchProgressDisplay(ProgressMode mode) : mode_(mode) {
  if (mode_ == ProgressMode::kAuto && !CanMoveCursor(STDERR_FILENO)) mode_ = ProgressMode::kPlain;
  due_ = std::chrono::steady_clock::now() + (mode_ == ProgressMode::kJson ? kJsonInterval : kPlainInterval);
}

bool BatchProgressDisplay::IsDue() {
  if (mode_ == ProgressMode::kNone) return false;
  if (mode_ == ProgressMode::kAuto) return line_.IsDue();
  const auto now = std::chrono::steady_clock::now();
  if (now < due_) return false;
  due_ = now + (mode_ == ProgressMode::kJson ? kJsonInterval : kPlainInterval);
  return true;
}

void BatchProgressDisplay::Update(const BatchProgress& progress, Seconds elapsed, std::optional<Seconds> time_left,
                                  const std::string& text) {
  if (mode_ == ProgressMode::kAuto) {
    line_.Show(text);
    return;
  }
  if (mode_ == ProgressMode::kPlain) {
    PrintStatus("batch: " + text);
    return;
  }
  nlohmann::ordered_json json;
  json["rows"] = progress.num_done;
  json["failed"] = progress.num_failed;
  const bool knows_rows = progress.num_rows && !progress.num_rows_is_estimate;
  json["total_rows"] = knows_rows ? nlohmann::ordered_json(std::llround(*progress.num_rows)) : nullptr;
  json["input_tokens_per_s"] = static_cast<double>(progress.num_prompt_tokens) / elapsed.count();
  json["output_tokens_per_s"] = static_cast<double>(progress.num_generation_tokens) / elapsed.count();
  json["preemptions"] = progress.stats.num_preemptions;
  json["elapsed_s"] = elapsed.count();
  json["time_left_s"] = time_left ? nlohmann::ordered_json(time_left->count()) : nullptr;
  const SpecDecodingStats& drafts = progress.stats.spec_decoding;
  if (drafts.Total().num_draft_tokens > 0) json["speculation"] = SpeculationJson(drafts);
  PrintStatus(DumpJson(json));
}

}  // namespace vllm::app
