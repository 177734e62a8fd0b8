// ThinkingDisplay: shows the thinking of one answer on standard error: its text, or one live line "thinking 12 s, 340
// tokens", and a line "thought for 15 s, 412 tokens" at its end. Owned by the command that prints the answer; main
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "app/terminal/progress_line.h"
#include "app/terminal/safe_text.h"

namespace vllm::app {

enum class ShowThinking : uint8_t { kFull, kSummary, kHidden };

// Returns the mode called full, summary or hidden. Throws ConfigError for other names.
ShowThinking ParseShowThinking(std::string_view name);

// Returns "thought for 15 s, 412 tokens", "thought for 1 min 20 s, 2,412 tokens", or "thought briefly, 9 tokens" if it
// took less than a second.
std::string ThoughtSummary(std::chrono::milliseconds time, int64_t num_tokens);

class ThinkingDisplay {
 public:
  using Clock = std::chrono::steady_clock;

  // `hint` is shown at the end of the live line.
  explicit ThinkingDisplay(ShowThinking mode, std::string hint = "");

  // Call for each output until the answer begins. `text` is the new text of the thought, and `num_tokens` the number of
  // its tokens so far.
  void Think(std::string_view text, int64_t num_tokens, Clock::time_point now = Clock::now());
  // Call before the answer's first text is printed, and at the end of the output. Prints the summary once.
  void End(Clock::time_point now = Clock::now());
  // Redraws the live line if it is due.
  void Update(Clock::time_point now = Clock::now());
  // Erases the live line until the next Update.
  void Clear() { line_.Clear(); }

  // Adds the time that the beginning of this thought took in an earlier run.
  void AddTime(std::chrono::milliseconds time) { time_ += time; }
  // How long the thought took, without the part that has not ended.
  std::chrono::milliseconds time() const { return time_; }
  bool is_shown() const { return began_.has_value() && !ended_; }

 private:
  ShowThinking mode_;
  std::string hint_;
  ProgressLine line_;
  SafeTextFilter filter_;
  std::optional<Clock::time_point> began_;
  bool ended_ = false;
  bool at_line_start_ = true;
  int64_t num_tokens_ = 0;
  std::chrono::milliseconds time_{0};
};

}  // namespace vllm::app
