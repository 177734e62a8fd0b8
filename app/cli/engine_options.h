// Converts Settings to a VllmConfig. The functions keep no state. They read the environment; any thread may call them
// as long as no thread changes it.
#pragma once

#include <cstdint>
#include <optional>

#include "app/cli/settings.h"
#include "engine/config/vllm_config.h"

namespace vllm::app {

// Returns the type that --kv-cache-dtype names, or nullopt for auto.
std::optional<kernels::KVDType> CacheDType(const Settings& settings);

// Returns the configuration for `model`. The caller must still call Finalize. Throws ConfigError
// `--<flag>: <why> (<value>)`, or `isa: <why> (<value>)`, because the ISA may come from $VLLMCLI_ISA.
VllmConfig MakeVllmConfig(const Settings& settings, const ModelConfig& model);

// Returns --seed if it is set. Otherwise returns a random seed for chat, run and complete, and 0 for other commands.
uint64_t ChooseSeed(const Settings& settings);

}  // namespace vllm::app
