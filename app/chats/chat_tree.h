// ChatTree: one conversation with all its branches, and the current message in it. If it has a store, every change is
// in the database when the call returns. If the database fails, for example because another process has locked it, the
// conversation continues in memory, and each later change tries to store all that is missing. TakeNotice says so. If
// the database was deleted or replaced, the whole conversation is stored in the new file. Owned by ChatSession; main
// thread.
//
// Message ids are those of the database in an opened conversation. A new message gets the next free id of the tree,
// because it may not have an id in the database yet.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/chats/chat_store.h"
#include "app/chats/stored_message.h"

namespace vllm::app {

class ChatTree {
 public:
  // Borrows `store`, which may be null: the conversation is then only in memory.
  explicit ChatTree(ChatStore* store) : store_(store) {}

  // Begins a new conversation. It gets a row in the database with its first message. Throws StoreError if changes of
  // the old conversation cannot be stored; the tree is then unchanged. The next call, also of Open, gives them up.
  void Begin();
  enum class OpenResult : uint8_t { kOpened, kMissing, kLocked };
  // Opens a stored conversation at its current message. Unless the result is kOpened, the tree is unchanged. Throws
  // StoreError, also as Begin does. REQUIRES: the tree has a store.
  OpenResult Open(int64_t chat);

  // Adds `message` as a child of message.parent, makes it the current one and returns its id. Sets its id and, if it is
  // 0, its creation time. REQUIRES: message.parent is 0 or in the tree.
  int64_t Add(StoredMessage message);
  // Replaces the message with this id, but not its creation time. Its parent and its role must be the same.
  void Update(const StoredMessage& message);
  // Makes another message the current one; 0 is the place before the first message.
  void MoveTo(int64_t id);
  void SetTitle(const std::string& title);
  // Stores a message that was typed but not sent. Does nothing before the first message.
  void SetDraft(const std::string& draft);
  const std::string& draft() const { return draft_; }
  // Tries once more to store the changes that are missing, and waits up to 5 s for a lock. Returns false if some are
  // still missing.
  bool StoreAll();
  // Deletes the conversation, also from the database, and begins a new one. Throws StoreError. Returns false if other
  // processes keep deleted text in the write-ahead log.
  bool Delete();

  bool empty() const { return messages_.empty(); }
  int64_t chat_id() const { return chat_id_; }  // 0: not stored
  const std::string& title() const { return title_; }
  int64_t current_id() const { return current_; }
  // Returns the message, or null for 0.
  const StoredMessage* Find(int64_t id) const;
  const StoredMessage* current() const { return Find(current_); }
  // Returns the messages from the first one to `id`.
  std::vector<const StoredMessage*> PathTo(int64_t id) const;
  // Returns the tokens up to `id`, as stored_message.h defines them.
  std::vector<int32_t> TokenIdsUpTo(int64_t id) const;
  // Returns the ids of the children of `id`, oldest first.
  std::vector<int64_t> ChildrenOf(int64_t id) const;
  // Returns all messages of all branches, oldest first.
  std::vector<StoredMessage> AllMessages() const;
  // Returns the last message of the newest branch below `id`; `id` itself if it has no children.
  int64_t NewestLeafBelow(int64_t id) const;

  // Returns a message for the user if the conversation can no longer be stored or is stored again, once; then "".
  std::string TakeNotice();
  // True from a failure of the database until all changes are stored.
  bool is_behind() const { return is_behind_; }
  // Returns the reason of the last failure of the database.
  const std::string& last_error() const { return error_; }

 private:
  // Stores all changes that are not in the database. Sets the notice if this begins to fail, or succeeds again.
  void StoreChanges();
  void WriteChanges();
  void Fail(const StoreError& error);
  // Throws StoreError if changes are missing in the database, but only once for them.
  void CheckAllIsStored();
  void Clear();
  int64_t StoredId(int64_t id) const { return id == 0 ? 0 : stored_ids_.at(id); }

  ChatStore* store_;
  int64_t chat_id_ = 0;
  std::string title_;
  std::string draft_;
  std::map<int64_t, StoredMessage> messages_;
  int64_t current_ = 0;

  std::map<int64_t, int64_t> stored_ids_;  // the ids of the messages in the database; missing: not stored
  std::set<int64_t> changed_;              // messages that are not in the database, or changed since
  int64_t stored_current_ = 0;             // the current message in the database
  bool title_is_stored_ = true;
  bool draft_is_stored_ = true;
  bool is_behind_ = false;
  bool may_give_up_ = false;
  std::string error_;  // of the last failure
  std::string notice_;
};

}  // namespace vllm::app
