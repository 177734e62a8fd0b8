// Converts Settings to VllmConfig. Functions of the settings and the model's files; no state, any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "app/cli/settings.h"
#include "engine/config/vllm_config.h"

namespace vllm::app {

// Returns the type that --kv-cache-dtype names, or none for auto.
std::optional<kernels::KVDType> CacheDType(const Settings& settings);

// Returns a configuration that is not finalized yet. Throws ConfigError naming the flag and its value.
VllmConfig MakeVllmConfig(const Settings& settings, const ModelConfig& model);

// Returns --seed if it is set. Otherwise returns a random seed for chat, run and complete, and 0 for other commands.
uint64_t ChooseSeed(const Settings& settings);

}  // namespace vllm::app
