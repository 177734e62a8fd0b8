// The slash commands of a chat, such as /set. The functions keep no state and act on the ChatSession; main thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/chat/chat_session.h"
#include "app/chat/commands/slash_result.h"
#include "app/editor/command_completer.h"

namespace vllm::app {

// Returns the names and aliases of all commands, with the slash.
std::vector<std::string> SlashCommandNames();
// Returns the same with descriptions, for completion.
std::vector<CommandCompleter::Command> SlashCommandDescriptions();

// Runs a line that begins with a slash. Prints an error if the line is invalid. Throws Interrupted, OutputClosed,
// EngineDeadError.
SlashResult RunSlashCommand(const std::string& line, ChatSession& session);

// Returns true if a function runs the command. For tests: every name in SlashCommandTable() must have one.
bool HasHandler(std::string_view name);

}  // namespace vllm::app
