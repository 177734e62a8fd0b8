#include "app/chats/chat_schema.h"

#include <array>
#include <string>

namespace vllm::app {
namespace {

// The statements that lead from version i to version i + 1. Never change an entry that has been released: append one.
constexpr std::array<const char*, kChatsSchemaVersion> kMigrations = {{
    R"sql(
CREATE TABLE chats(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  title TEXT NOT NULL DEFAULT '',
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  current_message INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX chats_updated ON chats(updated_ms);
CREATE TABLE messages(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  chat INTEGER NOT NULL REFERENCES chats(id) ON DELETE CASCADE,
  parent INTEGER NOT NULL,
  role INTEGER NOT NULL CHECK(role IN (0, 1, 2)),
  text TEXT NOT NULL,
  ids_begin INTEGER NOT NULL,
  context_first INTEGER NOT NULL,
  model TEXT NOT NULL,
  model_digest INTEGER NOT NULL,
  sampling_params TEXT NOT NULL,
  finish_reason TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  finished_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_chat ON messages(chat, id);
CREATE TABLE message_tokens(
  message INTEGER PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
  token_ids BLOB NOT NULL
) STRICT;
CREATE VIRTUAL TABLE message_words USING fts5(
  text, content = 'messages', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2');
)sql",
    R"sql(
ALTER TABLE messages ADD COLUMN thinking TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN num_thinking_ids INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN thinking_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN template_variables TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN draft TEXT NOT NULL DEFAULT '';
)sql",
    R"sql(
ALTER TABLE messages ADD COLUMN tool_calls TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN tool_call_id TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN tool_name TEXT NOT NULL DEFAULT '';
)sql",
}};

int64_t VersionOf(Database& database) {
  const int64_t application = database.QueryInt("PRAGMA application_id");
  const int64_t version = database.QueryInt("PRAGMA user_version");
  const bool is_empty = database.QueryInt("SELECT count(*) FROM sqlite_schema") == 0;
  if (is_empty && application == 0 && version == 0) return 0;
  if (application != kChatsApplicationId) database.Fail("not a chats database of vllmcli");
  if (version < 1) database.Fail("invalid schema version (" + std::to_string(version) + ")");
  if (version > kChatsSchemaVersion) {
    database.Fail("written by a newer vllmcli (schema version " + std::to_string(version) + ", this program knows " +
                  std::to_string(kChatsSchemaVersion) + ")");
  }
  return version;
}

}  // namespace

bool HasChatsSchema(Database& database) {
  // One read transaction, so that another process cannot migrate the file between the reads.
  database.Execute("BEGIN");
  int64_t version = 0;
  try {
    version = VersionOf(database);
  } catch (...) {
    database.Execute("ROLLBACK");
    throw;
  }
  database.Execute("COMMIT");
  return version == kChatsSchemaVersion;
}

void PrepareChatsSchema(Database& database) {
  if (HasChatsSchema(database)) return;
  Transaction transaction(database);
  // Again, because another process may have migrated the file before the transaction began.
  for (int64_t version = VersionOf(database); version < kChatsSchemaVersion; ++version) {
    database.Execute(kMigrations[static_cast<size_t>(version)]);
  }
  database.Execute("PRAGMA application_id = " + std::to_string(kChatsApplicationId));
  database.Execute("PRAGMA user_version = " + std::to_string(kChatsSchemaVersion));
  transaction.Commit();
}

}  // namespace vllm::app
