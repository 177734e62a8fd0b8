// How a chat template is asked to think (--think), and how the output of a model marks its thinking
// (--reasoning-parser). Functions without state; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "app/cli/settings.h"
#include "app/model/prompt_renderer.h"
#include "engine/reasoning/reasoning_format.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

enum class ThinkMode : uint8_t { kDefault, kOff, kOn, kLow, kMedium, kHigh };

// Returns the mode called on, off, low, medium or high; kDefault for an empty name. Throws ConfigError for other names.
ThinkMode ParseThinkMode(std::string_view name);

struct ThinkSwitch {
  std::string variables_json;  // template variables as a JSON object; empty: none
  std::string note;            // why the mode has no effect, or less than its name says; empty: it has
};

// Returns the variables that switch the thinking of this template: those of enable_thinking, thinking, reasoning_effort
// and thinking_budget that the template reads.
ThinkSwitch MakeThinkSwitch(ThinkMode mode, const PromptRenderer& renderer);

// Returns the format that --reasoning-parser names, or the one that the tokenizer and the chat template imply. Returns
// null if there is none, or if there is no tokenizer. `renderer` may be null. Throws ConfigError.
std::shared_ptr<const ReasoningFormat> ChooseReasoningFormat(
    const Settings& settings, const PromptRenderer* renderer,
    const std::shared_ptr<const tokenizer::Tokenizer>& tokenizer);

// Gives the renderer the variables of --think. Prints a warning if the template has no such switch.
void ApplyThinkSetting(const Settings& settings, PromptRenderer* renderer);

}  // namespace vllm::app
