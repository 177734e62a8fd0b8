// Implements `vllmcli bench`, which measures the latency or the throughput of the engine. Main thread.
#pragma once

#include "app/cli/settings.h"

namespace vllm::app {

// Returns the exit status. Throws ConfigError if a flag is invalid, and RequestError if a request fails.
int BenchCommand(const Settings& settings);

}  // namespace vllm::app
