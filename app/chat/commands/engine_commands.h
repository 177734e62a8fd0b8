// The slash command that shows the engine. See slash_commands.h; main thread.
#pragma once

#include <string>

#include "app/chat/chat_session.h"
#include "app/chat/commands/slash_result.h"

namespace vllm::app {

// Shows the live view of the chat's engine until the user leaves it.
SlashResult EngineCommand(const std::string& arguments, ChatSession& session);

// Prints the progress of the batch behind the chat (batch --chat).
SlashResult BatchProgressCommand(const std::string& arguments, ChatSession& session);

}  // namespace vllm::app
