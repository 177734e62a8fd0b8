// The settings of the cache of KV blocks on disk. Pure functions of the settings, the environment and the model's
// files; any thread may call them as long as no thread changes the environment.
#pragma once

#include <string>

#include "app/cli/settings.h"
#include "app/installed/model_location.h"
#include "engine/config/vllm_config.h"

namespace vllm::app {

// Returns the directory of the cache, or "" if there is no cache directory.
std::string KVDiskCacheDirectory();

// Returns what --kv-disk-cache says, or a disabled cache with --ephemeral, --no-save or random weights. Throws
// ConfigError if the size is not valid.
KVDiskCacheConfig MakeKVDiskCacheConfig(const Settings& settings, const ModelLocation& location);

}  // namespace vllm::app
