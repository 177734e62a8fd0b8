// Implements `vllmcli bench`, which measures the prefill and decode speed of a model. Main thread only.
#pragma once

#include "app/cli/settings.h"

namespace vllm::app {

// Returns the exit status.
int BenchCommand(const Settings& settings);

}  // namespace vllm::app
