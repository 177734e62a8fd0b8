// The slash commands that act on the conversation: its turns, its branches and the stored conversations. They throw
// ConfigError, ResourceError and StoreError, which RunSlashCommand prints, and Interrupted, OutputClosed and
// EngineDeadError. The functions keep no state; main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/chat/chat_session.h"
#include "app/chat/commands/slash_result.h"

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

// Opens a stored conversation: the one with this number, else the only one whose title contains `text`; if `text` is
// empty, the newest. Prints an error and returns false if no conversation was opened.
bool OpenChat(const std::string& text, ChatSession& session);
// Like OpenChat, and prints the conversation's last messages.
bool ResumeChat(const std::string& text, ChatSession& session);

// Parses settings such as {"temperature=0.2", "--seed", "5"}. Returns nullopt after printing an error of `command`.
std::optional<std::vector<SettingChange>> ParseChanges(const std::string& command,
                                                       const std::vector<std::string>& words);

// Returns the line that the user types to send `message`: with another slash if it begins with one.
std::string DraftOf(std::string message);

// Prints the last messages up to the current one.
void PrintConversation(const ChatSession& session);

}  // namespace vllm::app
