// Imports conversations from other programs' files into the ChatStore. Called by the chats command; main thread.
//
// Accepts ChatGPT's conversations.json, the JSON that `chats export` writes, and the logs.db of the llm program (tables
// conversations and responses). Imported messages have no token ids unless vllmcli wrote them, so a chat that continues
// one tokenizes it from its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "app/chats/chat_store.h"

namespace vllm::app {

struct ImportResult {
  int64_t num_chats = 0;
  int64_t num_messages = 0;
  std::vector<std::string> errors;  // one for each conversation that was left out: `conversation <n>: <why>`
};

// Imports every conversation of the file that is valid. Throws ConfigError if the file cannot be read or has none of
// the formats, and StoreError if the database fails.
ImportResult ImportChats(const std::string& path, ChatStore& store);
// The same for the text of a JSON file. `name` names it in messages.
ImportResult ImportChatsText(const std::string& text, const std::string& name, ChatStore& store);

inline constexpr size_t kMaxImportBytes = size_t{1} << 30;

}  // namespace vllm::app
