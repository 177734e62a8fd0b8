#include "app/output/prompt_status.h"

#include <chrono>
#include <string>

namespace vllm::app {

PromptStatus::PromptStatus(const LLMEngine& engine) : engine_(engine), line_(std::chrono::milliseconds(300)) {}

void PromptStatus::Update() {
  if (ended_ || !line_.IsDue()) return;
  const PromptProgress progress = engine_.prompt_progress();
  if (progress.num_computed_tokens >= progress.num_prompt_tokens) {
    line_.Clear();
    return;
  }
  line_.Show("reading prompt " + GroupedText(progress.num_computed_tokens) + "/" +
             GroupedText(progress.num_prompt_tokens) + " tokens");
}

void PromptStatus::End() {
  ended_ = true;
  line_.Clear();
}

}  // namespace vllm::app
