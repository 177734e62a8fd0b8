// The slash commands that act on answers (several at once, their code and their text), /tree, /delete and /model. They
// throw ConfigError, ResourceError and StoreError, which RunSlashCommand prints, and Interrupted, OutputClosed and
// EngineDeadError. The functions keep no state; main thread.
#pragma once

#include <string>

#include "app/chat/chat_session.h"
#include "app/chat/commands/slash_result.h"

namespace vllm::app {

SlashResult AnswersCommand(const std::string& arguments, ChatSession& session);
SlashResult PickCommand(const std::string& arguments, ChatSession& session);
SlashResult CopyCommand(const std::string& arguments, ChatSession& session);
SlashResult SaveCodeCommand(const std::string& arguments, ChatSession& session);
SlashResult TreeCommand(const std::string& arguments, ChatSession& session);
SlashResult DeleteCommand(const std::string& arguments, ChatSession& session);
SlashResult ModelCommand(const std::string& arguments, ChatSession& session);

// Returns the last answer up to the current message, or null.
const StoredMessage* FindLastAnswer(const ChatSession& session);

}  // namespace vllm::app
