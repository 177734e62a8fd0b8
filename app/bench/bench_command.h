// Implements `vllmcli bench`, which measures the latency or the throughput of the engine. Main thread.
#pragma once

#include "app/cli/settings.h"

namespace vllm::app {

// Returns the exit status. Throws ConfigError if the argument or a flag is invalid, RequestError if a request fails,
// ResourceError if the results cannot be written to --output-json, and the errors of ReadBenchResults and LoadModel.
int BenchCommand(const Settings& settings);

}  // namespace vllm::app
