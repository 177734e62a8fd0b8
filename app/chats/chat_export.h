// Formats a stored conversation as Markdown, JSON or HTML. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/chats/chat_store.h"
#include "app/chats/stored_message.h"

namespace vllm::app {

// Returns the messages of `chat` from the first one to the current one.
std::vector<const StoredMessage*> CurrentPath(const StoredChat& chat);

// Returns the messages up to the current one, each under a heading with its role. The thought of an answer comes before
// it in a <details> block, which viewers show closed.
std::string MarkdownOf(const StoredChat& chat);
// Returns the same as one HTML page without scripts, external styles or links.
std::string HtmlOf(const StoredChat& chat);
// Returns all messages of all branches with every field of StoredMessage; model_digest is hexadecimal text.
nlohmann::ordered_json JsonOf(const StoredChat& chat);

// Returns the text for a file with this name: .md, .html or .json. Throws ConfigError for other names.
std::string ExportText(const StoredChat& chat, const std::string& path);

}  // namespace vllm::app
