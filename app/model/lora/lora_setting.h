// The LoRA adapters of --lora. A pure function of the settings and the files; any thread.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "app/cli/settings.h"
#include "engine/config/vllm_config.h"

namespace vllm::app {

// Returns the path of the adapter that the user calls `name`: a path, or a repository of the hub.
using AdapterLocator = std::function<std::string(const std::string& name)>;

// Splits NAME=PATH. Throws ConfigError, which begins with `what`, if it is neither this nor NAME, for which the path is
// empty.
std::pair<std::string, std::string> ParseLoRA(const std::string& value, const std::string& what);

// Loads the adapters of `--lora NAME=PATH` for `model`. The adapter of requests that name none is that of the last
// `--lora NAME`. Without one, it is the only adapter. If there are several, it is none in a batch, whose rows name
// adapters. Throws ConfigError if a value is malformed, if a name occurs twice or is unknown, or if other commands
// do not choose one of several adapters. Throws as `locate` and LoadLoRAAdapter.
LoRAConfig MakeLoRAConfig(const Settings& settings, const ModelConfig& model, const AdapterLocator& locate);

}  // namespace vllm::app
