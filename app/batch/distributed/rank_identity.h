// What must be equal on all ranks of a distributed job: the model, the instruction set and the settings that change
// tokens. Reads files; main thread.
#pragma once

#include <optional>
#include <string>

#include "app/cli/settings.h"
#include "app/presets/preset_prompt.h"

namespace vllm::app {

// Returns the identity of this rank as JSON. REQUIRES: the settings of the preset have been applied to `settings`.
std::string RankIdentity(const Settings& settings, const std::optional<PresetPrompt>& preset);

// Returns what is different on a rank with the identity `other`, such as "isa is avx512 on rank 0 and avx2 there".
// Empty: it is the same. `other` may be any text.
std::string IdentityMismatch(const std::string& own, const std::string& other);

}  // namespace vllm::app
