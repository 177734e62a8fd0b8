// The LoRA adapters of --lora. A pure function of the settings and the files; any thread.
#pragma once

#include "app/cli/settings.h"
#include "engine/config/vllm_config.h"

namespace vllm::app {

// Loads the adapters of `--lora NAME=PATH` for `model`. The adapter of requests that name none is that of the last
// `--lora NAME`. Without one, it is the only adapter. If there are several, it is none in a batch, whose rows name
// adapters. Throws ConfigError if a value is malformed, if a name occurs twice or is unknown, or if other commands
// do not choose one of several adapters. Throws as LoadLoRAAdapter.
LoRAConfig MakeLoRAConfig(const Settings& settings, const ModelConfig& model);

}  // namespace vllm::app
