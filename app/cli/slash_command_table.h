// The table of the chat's slash commands. /help, completion and the man page are derived from it;
// app/chat/commands/slash_commands.cc maps the names to functions. Immutable; any thread.
#pragma once

#include <span>
#include <string_view>

namespace vllm::app {

struct SlashCommandInfo {
  std::string_view name;
  std::string_view aliases;    // separated by spaces
  std::string_view arguments;  // as shown in /help; in brackets if they may be left out
  std::string_view help;
};

std::span<const SlashCommandInfo> SlashCommandTable();

}  // namespace vllm::app
