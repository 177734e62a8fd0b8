// Implements `vllmcli perplexity`, which measures how well a model predicts a text, and how far its distributions are
// from those of a reference. Main thread.
#pragma once

#include "app/cli/settings.h"

namespace vllm::app {

// Returns the exit status. Throws ConfigError if an argument, a flag or the text is invalid, ResourceError if a chunk
// does not fit in memory, RequestError if a chunk fails, and the errors of LoadModel.
int PerplexityCommand(const Settings& settings);

}  // namespace vllm::app
