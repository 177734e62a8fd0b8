// The table of the program's commands. The parser, the tables of the configuration file, --help, the man page and the
// completions are derived from it. Immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace vllm::app {

enum class Command : uint32_t {
  kChat = 1u << 0,
  kRun = 1u << 1,
  kComplete = 1u << 2,
  kBatch = 1u << 3,
  kBench = 1u << 4,
  kTokenize = 1u << 5,
  kRender = 1u << 6,
  kModels = 1u << 7,
  kShow = 1u << 8,
  kConfig = 1u << 9,
  kCompletions = 1u << 10,
  kChats = 1u << 11,
  kPull = 1u << 12,
  kTrace = 1u << 14,
  kTop = 1u << 15,
  kPresets = 1u << 20,
  kCache = 1u << 21,
  kPerplexity = 1u << 22,
  kEmbed = 1u << 23,
  kScore = 1u << 24,
  kRerank = 1u << 25,
};

// What the arguments of a command name, for the completions.
enum class OperandKind : uint8_t { kNone, kFile, kModel };

struct CommandInfo {
  Command command;
  std::string_view name;
  std::string_view arguments;  // as shown in the usage line
  std::string_view choices;    // allowed arguments, separated by '|'; empty: no fixed list
  OperandKind operands;        // of the other arguments: those after the first if there are choices
  std::string_view summary;
  std::string_view description;
  std::string_view examples;  // command lines, separated by '\n'; may be empty
};

std::span<const CommandInfo> CommandTable();
std::optional<Command> FindCommand(std::string_view name);
const CommandInfo& CommandInfoOf(Command command);

}  // namespace vllm::app
