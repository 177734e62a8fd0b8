// The chat's own commands: lines that begin with a slash.
#pragma once

#include <string>
#include <vector>

#include "app/chat/chat_session.h"

namespace vllm {

// All names with their slash, for completion.
std::vector<std::string> SlashCommandNames();

// Runs a line that begins with a slash; false when the chat is to end. Mistakes are printed.
bool RunSlashCommand(const std::string& line, ChatSession& session);

}  // namespace vllm
