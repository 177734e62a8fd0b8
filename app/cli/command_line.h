// Parses the command line into Settings, using the tables of commands and flags. A pure function; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/cli/settings.h"

namespace vllm::app {

enum class CommandLineAction : uint8_t { kCommand, kHelp, kHelpAll, kVersion };

struct CommandLine {
  CommandLineAction action = CommandLineAction::kCommand;
  bool has_command = false;  // true: a command was named, or the help of settings.command was requested
  Settings settings;
};

// Parses `words`, the arguments without the program's name. `default_command` applies if the first word is empty or
// begins with a dash, or if there are no words. Throws ConfigError with a hint. For an unknown command or flag, the
// message suggests a similar known name if there is one.
CommandLine ParseCommandLine(std::vector<std::string> words, Command default_command);

}  // namespace vllm::app
