// The chat's slash commands. Main thread.
#pragma once

#include <string>
#include <vector>

#include "app/chat/chat_session.h"

namespace vllm::app {

// Returns all names, with their slash, for completion.
std::vector<std::string> SlashCommandNames();

// Runs a line that begins with a slash. Returns false if the chat must end. Prints errors in the line.
bool RunSlashCommand(const std::string& line, ChatSession& session);

}  // namespace vllm::app
