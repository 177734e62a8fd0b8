// The output of --help and --version, generated from the tables of commands and flags. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>

#include "app/cli/command.h"
#include "app/cli/flag.h"

namespace vllm::app {

// Returns "vllmcli 0.1.0\n", with the version of this build.
std::string VersionText();
// Returns the help of `command`. Without a command, returns the help of the program, which lists the commands.
std::string HelpText(std::optional<Command> command);
// Returns "-n, --max-tokens N", or "    --[no-]enable-prefix-caching" for a flag without a short name.
std::string FlagUsage(const Flag& flag);

}  // namespace vllm::app
