// The presets that ship with the program, as TOML texts (preset.h). Immutable; any thread.
#pragma once

#include <span>
#include <string_view>

namespace vllm::app {

struct ShippedPreset {
  std::string_view name;
  std::string_view text;
};

// Returns the presets, sorted by name.
std::span<const ShippedPreset> ShippedPresets();

}  // namespace vllm::app
