// PromptStatus: shows "reading prompt 3,200/12,000 tokens · 21 s left" on a terminal during the prefill of a long
// prompt. Shows nothing if other requests run too. Owned by the command that waits for the request; main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "app/terminal/progress_line.h"
#include "engine/frontend/llm_engine.h"

namespace vllm::app {

class PromptStatus {
 public:
  explicit PromptStatus(const LLMEngine& engine);

  // Redraws the line if it is due. Call after each Step.
  void Update();
  // Erases the line for good. Call before anything is printed.
  void End();
  // Erases the line until the next Update. The time until then does not count.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;

  const LLMEngine& engine_;
  ProgressLine line_;
  bool ended_ = false;
  // When and with how many tokens the measurement of the speed began.
  std::optional<Clock::time_point> began_;
  int64_t num_tokens_then_ = 0;
};

// Returns " · 21 s left" or " · 2 min 5 s left" for the rest of a prompt, of which `num_done` tokens took `time`.
// Returns "" if that is too little to tell.
std::string TimeLeftText(std::chrono::duration<double> time, int64_t num_done, int64_t num_left);

}  // namespace vllm::app
