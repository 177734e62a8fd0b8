// The prompt that a batch puts around its rows. Changes only its argument; main thread.
#pragma once

#include <optional>

#include "app/cli/settings.h"
#include "app/presets/preset_prompt.h"

namespace vllm::app {

// Returns the prompt of --preset, or of --prompt, in which only {input} is a variable. Applies the settings of the
// preset. Throws ConfigError, ResourceError.
std::optional<PresetPrompt> PromptOf(Settings& settings);

}  // namespace vllm::app
