// RunChat: the loop of a chat, for chat and for batch --chat. Main thread.
#pragma once

#include <optional>

#include "app/cli/settings.h"
#include "app/model/load_model.h"
#include "app/presets/preset_prompt.h"

namespace vllm::app {

// Chats until the user quits or the input ends. Serves model.background also while the user types. Throws ConfigError,
// ModelError, Interrupted, OutputClosed, EngineDeadError.
void RunChat(LoadedModel& model, const Settings& settings, const std::optional<PresetPrompt>& preset);

}  // namespace vllm::app
