// The words of the command line -> Settings, by the tables of commands and flags.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/cli/settings.h"

namespace vllm {

enum class CommandLineAction : uint8_t { kCommand, kHelp, kVersion };

struct CommandLine {
  CommandLineAction action = CommandLineAction::kCommand;
  bool has_command = false;  // else settings.command is the default the caller chose
  Settings settings;
};

// `words` without the program's name. Throws ConfigError naming the unknown or wrong word and the nearest known name.
CommandLine ParseCommandLine(std::vector<std::string> words, Command default_command);

}  // namespace vllm
