#include "app/output/prompt_status.h"

#include <chrono>
#include <cmath>
#include <string>

#include "app/output/duration_text.h"

namespace vllm::app {

std::string TimeLeftText(std::chrono::duration<double> time, int64_t num_done, int64_t num_left) {
  constexpr std::chrono::duration<double> kMinTime{0.5};
  constexpr double kMaxSeconds = 100.0 * 3600;
  if (num_done <= 0 || time < kMinTime) return "";
  const double seconds = std::ceil(time.count() / static_cast<double>(num_done) * static_cast<double>(num_left));
  if (seconds > kMaxSeconds) return "";
  return " · " + DurationText(std::chrono::seconds(static_cast<int64_t>(seconds))) + " left";
}

PromptStatus::PromptStatus(const LLMEngine& engine) : engine_(engine), line_(std::chrono::milliseconds(300)) {}

void PromptStatus::Update() {
  if (ended_) return;
  // The engine counts the tokens of all requests together.
  if (engine_.NumUnfinishedRequests() > 1) return End();
  const PromptProgress progress = engine_.prompt_progress();
  if (!began_) {
    began_ = Clock::now();
    num_tokens_then_ = progress.num_computed_tokens;
  }
  if (!line_.IsDue()) return;
  if (progress.num_computed_tokens >= progress.num_prompt_tokens) {
    line_.Clear();
    return;
  }
  line_.Show("reading prompt " + GroupedText(progress.num_computed_tokens) + "/" +
             GroupedText(progress.num_prompt_tokens) + " tokens" +
             TimeLeftText(Clock::now() - *began_, progress.num_computed_tokens - num_tokens_then_,
                          progress.num_prompt_tokens - progress.num_computed_tokens));
}

void PromptStatus::Clear() {
  line_.Clear();
  began_.reset();
}

void PromptStatus::End() {
  ended_ = true;
  line_.Clear();
}

}  // namespace vllm::app
