// ChatStore: the conversations of a user in an SQLite database. Owned by the command that uses it; main thread.
//
// Each call that changes something is one transaction and is on the disk when the call returns. Several processes may
// use the file. A process that writes a conversation holds its lock (LockChat), so that no other process changes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/chats/sqlite.h"
#include "app/chats/stored_message.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

struct ChatSummary {
  int64_t id = 0;
  std::string title;  // as the user set it, or the beginning of the first question
  int64_t created_ms = 0;
  int64_t updated_ms = 0;
  int64_t num_messages = 0;
  std::string model;  // of the newest answer
};

struct SearchHit {
  int64_t chat = 0;
  int64_t message = 0;
  std::string title;
  ChatRole role = ChatRole::kUser;
  std::string snippet;  // the text around the first match; may have several lines
};

struct StoredChat {
  int64_t id = 0;
  std::string title;
  int64_t created_ms = 0;
  int64_t updated_ms = 0;
  int64_t current_message = 0;          // 0: none
  std::string draft;                    // typed but not sent when a signal ended the chat; AddChat ignores it
  std::vector<StoredMessage> messages;  // by id: a parent comes before its children
};

// The database was deleted or replaced after the ChatStore had opened it. Reopen opens the new file.
class StoreReplacedError : public StoreError {
 public:
  using StoreError::StoreError;
};

class ChatStore {
 public:
  enum class Access : uint8_t { kRead, kWrite };

  // Opens `directory`/chats.db. For writing, creates the directory (mode 0700) and the file (0600) if they are missing,
  // and migrates the file. The journal mode is WAL where a trial write succeeds, else DELETE. If another process has
  // locked the file, the first call that needs the database opens it instead. For reading, migrates a file of an older
  // version, if possible, and also reads from a directory that the user may not write. Throws StoreError; for reading
  // also if the file is missing or locked.
  ChatStore(const std::string& directory, Access access);

  // Opens the file again, after it was deleted or replaced. If this fails, the next call that needs the database tries
  // again. Ends the lock of a conversation. REQUIRES: opened for writing.
  void Reopen();
  // If `waits`, calls wait up to 5 s for a lock of another process; this is the default. Otherwise they wait 0.1 s.
  void SetWaiting(bool waits);

  int64_t CreateChat(const std::string& title = "");
  // Adds a whole conversation and returns its id. The ids in `chat` are only links between its messages; a parent must
  // come before its children. A time of 0 means now.
  int64_t AddChat(const StoredChat& chat);
  // Adds a message, makes it the current one and returns its id. `message.id` is ignored.
  int64_t AddMessage(int64_t chat, const StoredMessage& message);
  // Replaces a message, except for its parent, role and creation time. Its context_first is an id of the database.
  void UpdateMessage(int64_t chat, const StoredMessage& message);
  void SetCurrentMessage(int64_t chat, int64_t message);
  void SetTitle(int64_t chat, const std::string& title);
  void SetDraft(int64_t chat, const std::string& draft);
  // Deletes a conversation. Returns false if there is none. Its text may remain in the write-ahead log until
  // EraseDeleted returns true.
  bool DeleteChat(int64_t chat);
  // Writes the log back to the file and truncates it, so that no deleted text remains in either. Returns false if other
  // processes that use the file prevent it.
  bool EraseDeleted();

  // Returns the newest `limit` conversations, newest first.
  std::vector<ChatSummary> List(int64_t limit);
  std::optional<StoredChat> Load(int64_t chat);
  // Returns at most `limit` conversations whose title contains `text`, the most recently updated first. A conversation
  // without a title is matched by the first 80 characters of its first question. Ignores the case of ASCII letters.
  std::vector<ChatSummary> FindByTitle(const std::string& text, int64_t limit);
  // Returns messages that contain every word of `query`, the best match first. Words match from their beginning and
  // without accents. If there are none, returns messages that contain `query` as a substring, newest first: this finds
  // parts of Chinese and Japanese text, whose words have no spaces between them.
  std::vector<SearchHit> Search(const std::string& query, int64_t limit);

  // Locks a conversation for writing, until UnlockChat or until this process ends, and unlocks the one that was locked
  // before. Returns false, without other effects, if another process has locked it. REQUIRES: opened for writing.
  bool LockChat(int64_t chat);
  void UnlockChat();

  std::string path() const { return directory_ + "/chats.db"; }

 private:
  // Returns the database. Opens it if it is not open.
  Database& database();
  std::unique_ptr<Database> Connect(Database::Mode mode) const;
  void OpenForWriting();
  void OpenForReading();
  // Sets the journal mode. May replace the connection.
  void ChooseJournal(std::unique_ptr<Database>& database) const;
  // Inserts a message and its tokens, within a transaction. Returns its id.
  int64_t InsertMessage(int64_t chat, const StoredMessage& message);
  std::vector<SearchHit> SearchSubstring(const std::string& query, int64_t limit);
  void IndexText(int64_t message, std::string_view text);
  // REQUIRES: `text` is the indexed text of the message.
  void UnindexText(int64_t message, std::string_view text);
  // Sets (F_WRLCK) or removes (F_UNLCK) the lock of a conversation. Returns false if another process has it.
  bool SetLock(int64_t chat, int16_t type);
  // Call before a change. Opens the database if it is not open. Throws StoreReplacedError if the file was deleted or
  // replaced while it was open.
  void CheckFile();
  static std::vector<ChatSummary> Summaries(Statement& statement);

  std::string directory_;
  std::unique_ptr<Database> database_;  // null: not open; only if opened for writing
  tokenizer::UniqueFd lock_fd_;
  int64_t locked_chat_ = 0;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  int busy_timeout_ms_ = 0;
};

// Returns milliseconds since 1970.
int64_t NowMs();

}  // namespace vllm::app
