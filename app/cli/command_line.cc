#include "app/cli/command_line.h"

#include <algorithm>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>

#include "app/cli/parse_value.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

// CLI11 parses a positional argument "[a,b]" as a list. This byte is put in front of every word that begins with '[' or
// with the byte itself, and Unguard() removes it after parsing.
constexpr char kGuard = '\x01';

std::string Unguard(std::string value) {
  if (!value.empty() && value.front() == kGuard) value.erase(0, 1);
  return value;
}

[[noreturn]] void UnknownFlag(const std::string& word, Command command) {
  std::vector<std::string> names;
  for (const Flag& flag : FlagTable()) {
    if (flag.belongs_to(command)) names.push_back("--" + std::string(flag.name));
  }
  std::string bare = word.substr(0, word.find('='));
  const Flag* elsewhere = bare.size() > 2 ? FindFlag(bare.substr(2)) : nullptr;
  for (const Flag& flag : FlagTable()) {
    if (bare.size() == 2 && flag.short_name == bare[1]) elsewhere = &flag;
  }
  std::string message = "unknown flag " + bare + " for " + std::string(CommandInfoOf(command).name);
  std::string hint = "vllmcli " + std::string(CommandInfoOf(command).name) + " --help-all lists all flags";
  if (const std::string near = NearestName(bare, names); !near.empty()) {
    message += "; did you mean " + near + "?";
  } else if (elsewhere != nullptr) {
    message += "; it is a flag of another command";
    std::string commands;
    for (const CommandInfo& info : CommandTable()) {
      if (elsewhere->belongs_to(info.command)) commands += (commands.empty() ? "" : ", ") + std::string(info.name);
    }
    hint = bare + " is a flag of " + commands;
  } else if (bare.size() > 1 && bare[1] != '-') {
    hint = "put -- before a text that begins with a dash; " + hint;
  }
  throw ConfigError(message, hint);
}

[[noreturn]] void UnknownCommand(const std::string& word) {
  std::vector<std::string> names;
  for (const CommandInfo& info : CommandTable()) names.emplace_back(info.name);
  const std::string near = NearestName(word, names);
  const bool is_text = word.find(' ') != std::string::npos;
  const bool is_file = word.find('/') != std::string::npos || word.ends_with(".gguf");
  throw ConfigError("unknown command " + word + (near.empty() ? "" : "; did you mean " + near + "?"),
                    is_text   ? "vllmcli run 'TEXT' answers a prompt"
                    : is_file ? "vllmcli chat -m MODEL chats with a model"
                              : "vllmcli --help lists the commands");
}

void AddFlags(CLI::App& parser, Command command, std::map<const Flag*, CLI::Option*>& options) {
  for (const Flag& flag : FlagTable()) {
    if (!flag.belongs_to(command)) continue;
    std::string names = "--" + std::string(flag.name);
    if (flag.short_name != 0) names = std::string("-") + flag.short_name + "," + names;
    CLI::Option* option = nullptr;
    if (flag.takes_value()) {
      option = parser.add_option(names);
      if (flag.kind == ValueKind::kOptionalText) {
        option->expected(0, 1);
      } else {
        option->expected(-1)->allow_extra_args(false);
      }
    } else {
      if (flag.kind == ValueKind::kNegatable) names += ",!--no-" + std::string(flag.name);
      option = parser.add_flag(names);
    }
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    options[&flag] = option;
  }
}

}  // namespace

CommandLine ParseCommandLine(std::vector<std::string> words, Command default_command) {
  CommandLine line;
  Command command = default_command;
  if (!words.empty() && (words[0] == "--version" || words[0] == "-V")) {
    line.action = CommandLineAction::kVersion;
    return line;
  }
  if (!words.empty() && (words[0] == "--help" || words[0] == "--help-all" || words[0] == "-h" || words[0] == "help")) {
    line.action = CommandLineAction::kHelp;
    for (const std::string& word : words) {
      if (word == "--help-all") line.action = CommandLineAction::kHelpAll;
      if (&word == words.data() || word.empty() || word.front() == '-' || line.has_command) continue;
      const std::optional<Command> topic = FindCommand(word);
      if (!topic) UnknownCommand(word);
      line.has_command = true;
      line.settings.command = *topic;
    }
    return line;
  }
  if (!words.empty() && !words[0].empty() && words[0][0] != '-') {
    const std::optional<Command> found = FindCommand(words[0]);
    if (!found) UnknownCommand(words[0]);
    command = *found;
    line.has_command = true;
    words.erase(words.begin());
  }
  line.settings.command = command;

  bool only_arguments = false;
  for (std::string& word : words) {
    if (word == "--") only_arguments = true;
    if (!only_arguments && word == "-tp") word = "--tensor-parallel-size";
    if (!only_arguments && word == "-dp") word = "--data-parallel-size";
    if (!word.empty() && (word.front() == '[' || word.front() == kGuard)) word.insert(word.begin(), kGuard);
  }

  CLI::App parser;
  parser.set_help_flag();
  parser.allow_extras(false);
  std::map<const Flag*, CLI::Option*> options;
  AddFlags(parser, command, options);
  std::vector<std::string> arguments;
  CLI::Option* positional = parser.add_option("arguments", arguments)->expected(-1);
  try {
    std::reverse(words.begin(), words.end());
    parser.parse(words);
  } catch (const CLI::ExtrasError&) {
    for (const std::string& word : parser.remaining()) {
      if (word.size() > 1 && word.front() == '-') UnknownFlag(word, command);
    }
    throw ConfigError("unexpected argument for " + std::string(CommandInfoOf(command).name));
  } catch (const CLI::ParseError& error) {
    throw ConfigError(error.what(),
                      "vllmcli " + std::string(CommandInfoOf(command).name) + " --help explains the flags");
  }

  for (const auto& [flag, option] : options) {
    if (option->count() == 0) continue;
    if (flag->name == "help" && line.action == CommandLineAction::kCommand) line.action = CommandLineAction::kHelp;
    if (flag->name == "help-all" && line.action != CommandLineAction::kVersion) {
      line.action = CommandLineAction::kHelpAll;
    }
    if (flag->name == "version") line.action = CommandLineAction::kVersion;
    std::vector<std::string> values = option->results();
    // CLI11 returns "{}" for an optional value that is absent.
    if (flag->kind == ValueKind::kOptionalText && values == std::vector<std::string>{"{}"}) values = {""};
    for (std::string& value : values) value = Unguard(std::move(value));
    line.settings.Set(*flag, std::move(values), SettingSource::kCommandLine, "--" + std::string(flag->name));
  }
  if (line.action != CommandLineAction::kCommand) line.has_command = line.has_command || default_command == command;
  if (positional->count() > 0) {
    for (std::string& argument : arguments) line.settings.arguments.push_back(Unguard(std::move(argument)));
  }
  return line;
}

}  // namespace vllm::app
