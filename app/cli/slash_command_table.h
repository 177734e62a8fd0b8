// The table of the chat's slash commands. /help, completion and the man page are derived from it;
// app/chat/commands/slash_commands.cc maps the names to functions. Immutable; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

struct SlashCommandInfo {
  std::string_view name;
  std::string_view aliases;    // separated by spaces
  std::string_view arguments;  // as shown in /help; in brackets if they may be left out
  std::string_view help;
};

std::span<const SlashCommandInfo> SlashCommandTable();
// Returns the name of a command, followed by its aliases.
std::vector<std::string> NamesOf(const SlashCommandInfo& command);
// Returns the command with this name or alias, or null.
const SlashCommandInfo* FindSlashCommand(std::string_view name);

}  // namespace vllm::app
