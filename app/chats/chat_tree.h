// ChatTree: one conversation with all its branches, and the current message in it. If it has a store, every change is
// in the database when the call returns; if the database fails, the conversation continues in memory, and TakeError
// says why. Owned by ChatSession; main thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/chats/chat_store.h"
#include "app/chats/stored_message.h"

namespace vllm::app {

class ChatTree {
 public:
  // Borrows `store`, which may be null: the conversation is then only in memory.
  explicit ChatTree(ChatStore* store) : store_(store) {}

  // Begins a new conversation. It gets a row in the database with its first message.
  void Begin();
  enum class OpenResult : uint8_t { kOpened, kMissing, kLocked };
  // Opens a stored conversation at its current message. Unless the result is kOpened, the tree is unchanged. Throws
  // StoreError. REQUIRES: the tree has a store.
  OpenResult Open(int64_t chat);

  // Adds `message` as a child of message.parent, makes it the current one and returns its id. Sets its id and creation
  // time. REQUIRES: message.parent is 0 or in the tree.
  int64_t Add(StoredMessage message);
  // Replaces the text, thinking, token ids, sampling parameters, finish reason and finish time of the message with this
  // id.
  void Update(const StoredMessage& message);
  // Makes another message the current one; 0 is the place before the first message.
  void MoveTo(int64_t id);
  void SetTitle(const std::string& title);

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

  // Returns the reason why the conversation is no longer stored, once; then "".
  std::string TakeError();

 private:
  // Runs `write`. If it throws StoreError, ends the use of the store.
  template <typename Write>
  void Store(const Write& write);

  ChatStore* store_;
  int64_t chat_id_ = 0;
  std::string title_;
  std::map<int64_t, StoredMessage> messages_;
  int64_t current_ = 0;
  std::string error_;
};

}  // namespace vllm::app
