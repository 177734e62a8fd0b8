// The schema of the chats database: creates it, and migrates files of older versions. Called by ChatStore; main thread.
//
//   chats     a conversation: id, title (empty: the beginning of the first question), times, the current message,
//             a message that was typed but not sent when a signal ended the chat
//   messages  see stored_message.h. The result of a tool has the role of a user, because the CHECK of version 1 allows
//   no
//             other number, and differs from a question by its tool_call_id, which is not empty
//   message_tokens  the token ids of each message as 32-bit little-endian integers, in another table so that a scan of
//                   all texts does not read them
//   message_words   FTS5 index of messages.text. ChatStore updates it, because triggers may not with
//                   trusted_schema = OFF
//
// PRAGMA application_id is kChatsApplicationId, and PRAGMA user_version is the version of the schema.
#pragma once

#include <cstdint>

#include "app/chats/sqlite.h"

namespace vllm::app {

inline constexpr int64_t kChatsApplicationId = 0x764C4C4D;  // "vLLM"
inline constexpr int64_t kChatsSchemaVersion = 3;

// Creates the tables in an empty file, or migrates the file to the current version in one transaction. Throws
// StoreError if the file belongs to another program or to a newer version; the file is then unchanged.
void PrepareChatsSchema(Database& database);
// Returns true if the file has the current version, false if it is empty or older. Throws StoreError as above.
bool HasChatsSchema(Database& database);

}  // namespace vllm::app
