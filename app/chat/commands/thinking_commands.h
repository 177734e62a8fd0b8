// The slash commands about the model's thinking (see slash_commands.h). Functions without state; main thread.
#pragma once

#include <string>

#include "app/chat/chat_session.h"
#include "app/chat/commands/slash_result.h"

namespace vllm::app {

// /think: sets the mode of thinking, or prints it.
SlashResult ThinkCommand(const std::string& arguments, ChatSession& session);
// /thinking: prints the thought of the last answer that has one.
SlashResult ThinkingCommand(const std::string& arguments, ChatSession& session);

}  // namespace vllm::app
