// The command `vllmcli models`: lists and removes models, and sets aliases and the default. Main thread.
#pragma once

#include "app/cli/settings.h"

namespace vllm::app {

// Returns the exit status. Throws what its action throws (models_actions.h), and ConfigError for wrong arguments.
int ModelsCommand(const Settings& settings);

}  // namespace vllm::app
