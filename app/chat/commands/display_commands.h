// The slash commands and settings of a chat that change how answers are shown. The functions keep no state; main
// thread.
#pragma once

#include <string>

#include "app/chat/chat_session.h"
#include "app/chat/commands/slash_result.h"

namespace vllm::app {

// Handles /set for a setting of the display. Returns false if `name` is none. An empty `value` prints the setting.
// Throws ConfigError for a value that is neither on nor off.
bool SetDisplay(const std::string& name, const std::string& value, ChatSession& session);

// Switches between rendered Markdown and plain text. Prints the last answer again as plain text.
SlashResult RawCommand(const std::string& arguments, ChatSession& session);

}  // namespace vllm::app
