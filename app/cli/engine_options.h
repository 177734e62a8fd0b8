// Settings -> VllmConfig. Pure functions of the settings and the model's own files.
#pragma once

#include <cstdint>
#include <optional>

#include "app/cli/settings.h"
#include "engine/config/vllm_config.h"

namespace vllm {

// --kv-cache-dtype; none for auto.
std::optional<KVDType> CacheDType(const Settings& settings);

// Not finalized. Throws ConfigError naming flag and value.
VllmConfig MakeVllmConfig(const Settings& settings, const ModelConfig& model);

// --seed, or a new one each time for commands that talk with a person.
uint64_t ChooseSeed(const Settings& settings);

}  // namespace vllm
