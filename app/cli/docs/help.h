// The texts of --help and --version, generated from the tables of commands and flags.
#pragma once

#include <optional>
#include <string>

#include "app/cli/command.h"
#include "app/cli/flag.h"

namespace vllm::app {

std::string VersionText();
// Returns the help of `command`, or the program's help with the list of commands.
std::string HelpText(std::optional<Command> command);
// Returns "-n, --max-tokens N", or "    --[no-]enable-prefix-caching" for a flag without a short name.
std::string FlagUsage(const Flag& flag);

}  // namespace vllm::app
