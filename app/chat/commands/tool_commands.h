// The slash command for tools: /tools. A function without state; main thread.
#pragma once

#include <string>

#include "app/chat/chat_session.h"
#include "app/chat/commands/slash_result.h"

namespace vllm::app {

SlashResult ToolsCommand(const std::string& arguments, ChatSession& session);

}  // namespace vllm::app
