// The input of a chat: files in messages, and completion with Tab. The functions keep no state; main thread.
#pragma once

#include <optional>
#include <string>

#include "app/chat/chat_session.h"
#include "app/chat/commands/slash_result.h"
#include "app/editor/completer.h"

namespace vllm::app {

// The slash command /file PATH: checks the file and begins the next message with a reference to it.
SlashResult FileCommand(const std::string& arguments, ChatSession& session);

// Returns `text` with the files that it refers to (ExpandFileReferences), and prints which they are. Prints an error
// and returns nullopt if one of them cannot be sent.
std::optional<std::string> MessageWithFiles(const std::string& text, const ChatSession& session);

// Returns a function that completes slash commands and their arguments. Borrows `session`.
Completer ChatCompleter(ChatSession& session);

}  // namespace vllm::app
