// The actions of `vllmcli models`, one per file. Each returns the exit status. Main thread.
#pragma once

#include <string>
#include <vector>

#include "app/cli/settings.h"

namespace vllm::app {

// Prints the installed models, as JSON with --json, or only their names with --names. Throws ConfigError if the aliases
// cannot be read.
int ListModelsAction(const Settings& settings);

// Removes models after a question, or without one if --yes is set. Removes none if one of them cannot be removed.
// Returns 1 if the user says no. Throws ConfigError without --yes if it cannot ask, and what PlanRemoval and Remove
// throw.
int RemoveModelsAction(const std::vector<std::string>& names, const Settings& settings);

// Lists all aliases, or changes those in `arguments`: "NAME=MODEL", "NAME=" to remove, "NAME" to print. Throws
// ConfigError, RequestError for an alias that does not exist, ResourceError.
int AliasAction(const std::vector<std::string>& arguments, const Settings& settings);

// Writes the default model to the configuration file. Throws ConfigError, ModelError for a model that is neither
// installed nor the name of a repository, ResourceError.
int UseModelAction(const std::string& name, const Settings& settings);

}  // namespace vllm::app
