// Parses the command line into Settings, using the tables of commands and flags. A pure function; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/cli/settings.h"

namespace vllm::app {

enum class CommandLineAction : uint8_t { kCommand, kHelp, kVersion };

struct CommandLine {
  CommandLineAction action = CommandLineAction::kCommand;
  bool has_command = false;  // false: settings.command is the caller's default
  Settings settings;
};

// Parses `words`, the arguments without the program's name. `default_command` applies when they name no command. Throws
// ConfigError naming the unknown or invalid word and, if there is one, a similar known name.
CommandLine ParseCommandLine(std::vector<std::string> words, Command default_command);

}  // namespace vllm::app
