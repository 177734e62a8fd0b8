// BatchProgressDisplay: shows the progress of a batch on standard error: one line that is redrawn on a terminal, a line
// every 30 s elsewhere, or JSON lines. Owned by the batch command; main thread.
#pragma once

#include <chrono>
#include <string>

#include "app/batch/batch_live.h"
#include "app/terminal/progress_line.h"

namespace vllm::app {

enum class ProgressMode : uint8_t { kAuto, kPlain, kNone, kJson };

class BatchProgressDisplay {
 public:
  static constexpr std::chrono::seconds kPlainInterval{30};
  static constexpr std::chrono::seconds kJsonInterval{1};

  explicit BatchProgressDisplay(ProgressMode mode);

  // Shows the progress if it is time, as `text` or, for JSON, as {"rows","failed","total_rows","input_tokens_per_s",
  // "output_tokens_per_s","preemptions","elapsed_s","time_left_s"}; what is unknown is null. If tokens were drafted,
  // "speculation" follows, the SpeculationJson.
  void Update(const BatchProgress& progress, Seconds elapsed, std::optional<Seconds> time_left,
              const std::string& text);
  // Returns true if Update would show something.
  bool IsDue();
  // Erases the line, so that something else can be printed.
  void Clear() { line_.Clear(); }

 private:
  ProgressMode mode_;
  ProgressLine line_{std::chrono::milliseconds(300)};
  std::chrono::steady_clock::time_point due_;
};

}  // namespace vllm::app
