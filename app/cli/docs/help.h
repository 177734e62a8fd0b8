// The output of --help, generated from the tables of commands and flags, and of --version. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "app/cli/command.h"
#include "app/cli/flag.h"

namespace vllm::app {

// Returns "vllmcli 0.1.0\n", with the version of this build.
std::string VersionText();

enum class HelpDetail : uint8_t {
  kFirst,  // the flags that people use first, if the command has many
  kAll,    // all flags; for the program also the environment and the exit status
};
// Returns the help of `command`. Without a command, returns the help of the program, which lists the commands. Wraps
// the texts to lines of at most `width` columns; examples and tables with fixed lines may be wider.
std::string HelpText(std::optional<Command> command, HelpDetail detail, size_t width = 100);
// Returns the flag as --help shows it: "-n, --max-tokens N" or, without a short name,
// "    --[no-]enable-prefix-caching".
std::string FlagUsage(const Flag& flag);

}  // namespace vllm::app
