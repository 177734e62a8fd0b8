// The slash commands that act on the conversation: its turns, its branches and the stored conversations. They throw
// ConfigError, ResourceError and StoreError, which RunSlashCommand prints, and Interrupted, OutputClosed and
// EngineDeadError. The functions keep no state; main thread.
#pragma once

#include <string>

#include "app/chat/chat_session.h"
#include "app/chat/slash_result.h"

namespace vllm::app {

SlashResult NewCommand(const std::string& arguments, ChatSession& session);
SlashResult ResumeCommand(const std::string& arguments, ChatSession& session);
SlashResult UndoCommand(const std::string& arguments, ChatSession& session);
SlashResult RedoCommand(const std::string& arguments, ChatSession& session);
SlashResult RegenerateCommand(const std::string& arguments, ChatSession& session);
SlashResult ContinueCommand(const std::string& arguments, ChatSession& session);
SlashResult EditCommand(const std::string& arguments, ChatSession& session);
SlashResult NextCommand(const std::string& arguments, ChatSession& session);
SlashResult PreviousCommand(const std::string& arguments, ChatSession& session);
SlashResult ForkCommand(const std::string& arguments, ChatSession& session);
SlashResult TitleCommand(const std::string& arguments, ChatSession& session);
SlashResult SearchCommand(const std::string& arguments, ChatSession& session);
SlashResult ExportCommand(const std::string& arguments, ChatSession& session);

// Continues a stored conversation: the one with this number, else the only one whose title contains `text`; if `text`
// is empty, the newest. Prints its last messages, or an error. Returns false if no conversation was opened.
bool ResumeChat(const std::string& text, ChatSession& session);

// Prints the last messages up to the current one.
void PrintConversation(const ChatSession& session);

}  // namespace vllm::app
