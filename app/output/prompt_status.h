// PromptStatus: shows "reading prompt 3,200/12,000 tokens" on a terminal during the prefill of a long prompt. Owned by
// the command that waits for the only running request; main thread.
#pragma once

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
  // Erases the line until the next Update.
  void Clear() { line_.Clear(); }

 private:
  const LLMEngine& engine_;
  ProgressLine line_;
  bool ended_ = false;
};

}  // namespace vllm::app
