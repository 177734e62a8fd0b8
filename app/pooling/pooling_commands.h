// Implements `vllmcli embed`, `vllmcli score` and `vllmcli rerank`. Main thread.
#pragma once

#include "app/cli/settings.h"

namespace vllm::app {

// Return the exit status: 1 if a text has failed. Throw ConfigError if an argument or a flag is invalid, ModelError if
// the texts cannot be read, ResourceError if the output cannot be written, and the errors of LoadModel.
int EmbedCommand(const Settings& settings);
int ScoreCommand(const Settings& settings);
int RerankCommand(const Settings& settings);

}  // namespace vllm::app
