// The slash commands of a chat, such as /set. The functions keep no state and act on the ChatSession; main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/chat/chat_session.h"

namespace vllm::app {

// Returns the names and aliases of all commands, with the slash, for completion.
std::vector<std::string> SlashCommandNames();

struct SlashResult {
  bool quits = false;
  std::optional<std::string> draft;  // text for the input line, from /edit
};

// Runs a line that begins with a slash. Prints an error if the line is invalid. Throws Interrupted, OutputClosed,
// EngineDeadError.
SlashResult RunSlashCommand(const std::string& line, ChatSession& session);

// Continues a stored conversation: the one with this number, else the only one whose title contains `text`; if `text`
// is empty, the newest. Prints its last messages, or an error. Returns false if no conversation was opened.
bool ResumeChat(const std::string& text, ChatSession& session);

}  // namespace vllm::app
