// What --help and --version print, made from the tables.
#pragma once

#include <optional>
#include <string>

#include "app/cli/command.h"
#include "app/cli/flag.h"

namespace vllm {

std::string VersionText();
// The list of commands, or one command's flags.
std::string HelpText(std::optional<Command> command);
// "-n, --max-tokens N" or "--[no-]enable-prefix-caching".
std::string FlagUsage(const Flag& flag);

}  // namespace vllm
