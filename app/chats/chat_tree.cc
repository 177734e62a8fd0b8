#include "app/chats/chat_tree.h"

#include <algorithm>
#include <utility>

namespace vllm::app {
namespace {

constexpr int64_t kMaxMessageId = int64_t{1} << 62;

}  // namespace

void ChatTree::WriteChanges() {
  if (chat_id_ == 0) {
    if (messages_.empty()) return;  // no row before the first message
    chat_id_ = store_->CreateChat(title_);
    title_is_stored_ = true;
  }
  // Does nothing if this process has the lock. Another process can open a new conversation before it is locked here.
  if (!store_->LockChat(chat_id_)) {
    throw StoreError("conversation " + std::to_string(chat_id_) + ": is open in another process");
  }
  // In ascending order, so a parent is stored before its children.
  while (!changed_.empty()) {
    const int64_t id = *changed_.begin();
    StoredMessage message = messages_.at(id);
    message.parent = StoredId(message.parent);
    message.context_first = StoredId(message.context_first);
    if (const auto stored = stored_ids_.find(id); stored != stored_ids_.end()) {
      message.id = stored->second;
      store_->UpdateMessage(chat_id_, message);
    } else {
      stored_ids_[id] = store_->AddMessage(chat_id_, message);
      stored_current_ = id;
    }
    changed_.erase(id);
  }
  if (stored_current_ != current_) {
    store_->SetCurrentMessage(chat_id_, StoredId(current_));
    stored_current_ = current_;
  }
  if (!title_is_stored_) store_->SetTitle(chat_id_, title_);
  title_is_stored_ = true;
  if (!draft_is_stored_) store_->SetDraft(chat_id_, draft_);
  draft_is_stored_ = true;
}

void ChatTree::StoreChanges() {
  if (store_ == nullptr) return;
  try {
    try {
      WriteChanges();
    } catch (const StoreReplacedError& error) {
      // Before Reopen, which may fail: the numbers of the old file mean nothing in the new one.
      chat_id_ = 0;
      stored_ids_.clear();
      stored_current_ = 0;
      for (const auto& entry : messages_) changed_.insert(entry.first);
      draft_is_stored_ = draft_.empty();
      store_->Reopen();
      WriteChanges();
      notice_ = std::string(error.what()) + "; a new file was opened" +
                (chat_id_ == 0 ? "" : ", which has this conversation as number " + std::to_string(chat_id_));
    }
  } catch (const StoreError& error) {
    Fail(error);
    return;
  }
  if (!is_behind_) return;
  is_behind_ = false;
  may_give_up_ = false;
  store_->SetWaiting(true);
  if (notice_.empty()) notice_ = "this conversation is completely stored again";
}

void ChatTree::Fail(const StoreError& error) {
  error_ = error.what();
  if (!is_behind_) notice_ = "this conversation is not stored now, but every message tries again: " + error_;
  is_behind_ = true;
  // The user has waited once. An answer that is being written stores itself every two seconds and must not stop for
  // five.
  store_->SetWaiting(false);
}

bool ChatTree::StoreAll() {
  if (!is_behind_) return true;
  store_->SetWaiting(true);
  StoreChanges();
  return !is_behind_;
}

void ChatTree::CheckAllIsStored() {
  if (is_behind_) StoreChanges();
  if (!is_behind_) return;
  if (std::exchange(may_give_up_, true)) return;
  throw StoreError("the end of this conversation is not stored: " + error_ +
                   "; repeat the command to leave it, or save it with /export FILE.md first");
}

void ChatTree::Clear() {
  chat_id_ = 0;
  title_.clear();
  draft_.clear();
  messages_.clear();
  current_ = 0;
  stored_ids_.clear();
  changed_.clear();
  stored_current_ = 0;
  title_is_stored_ = true;
  draft_is_stored_ = true;
  is_behind_ = false;
  may_give_up_ = false;
  if (store_ != nullptr) store_->SetWaiting(true);
}

void ChatTree::Begin() {
  CheckAllIsStored();
  if (store_ != nullptr) store_->UnlockChat();
  Clear();
}

bool ChatTree::Delete() {
  bool is_erased = true;
  if (store_ != nullptr && chat_id_ != 0) {
    store_->DeleteChat(chat_id_);
    is_erased = store_->EraseDeleted();
  }
  if (store_ != nullptr) store_->UnlockChat();
  Clear();
  return is_erased;
}

ChatTree::OpenResult ChatTree::Open(int64_t chat) {
  if (chat < 1) return OpenResult::kMissing;
  if (chat == chat_id_) return OpenResult::kOpened;
  CheckAllIsStored();
  if (!store_->LockChat(chat)) return OpenResult::kLocked;
  const auto lock_previous = [&] {
    if (chat_id_ == 0 || !store_->LockChat(chat_id_)) store_->UnlockChat();
  };
  std::optional<StoredChat> stored;
  try {
    stored = store_->Load(chat);
  } catch (const StoreError&) {
    lock_previous();
    throw;
  }
  if (!stored) {
    lock_previous();
    return OpenResult::kMissing;
  }
  Clear();
  chat_id_ = chat;
  title_ = std::move(stored->title);
  draft_ = std::move(stored->draft);
  for (StoredMessage& message : stored->messages) {
    // A crafted file could have ids that overflow, cycles or missing parents. Parents have smaller ids.
    if (message.id < 1 || message.id > kMaxMessageId) continue;
    if (message.parent != 0 && (message.parent >= message.id || Find(message.parent) == nullptr)) message.parent = 0;
    if (Find(message.context_first) == nullptr) message.context_first = 0;
    stored_ids_[message.id] = message.id;
    messages_.emplace(message.id, std::move(message));
  }
  current_ = Find(stored->current_message) != nullptr ? stored->current_message : 0;
  stored_current_ = current_;
  return OpenResult::kOpened;
}

int64_t ChatTree::Add(StoredMessage message) {
  if (message.created_ms == 0) message.created_ms = NowMs();
  message.id = messages_.empty() ? 1 : messages_.rbegin()->first + 1;
  current_ = message.id;
  changed_.insert(current_);
  messages_.emplace(message.id, std::move(message));
  StoreChanges();
  return current_;
}

void ChatTree::Update(const StoredMessage& message) {
  StoredMessage& stored = messages_.at(message.id);
  const int64_t created_ms = stored.created_ms;
  stored = message;
  stored.created_ms = created_ms;
  changed_.insert(message.id);
  StoreChanges();
}

void ChatTree::MoveTo(int64_t id) {
  current_ = id;
  StoreChanges();
}

void ChatTree::SetTitle(const std::string& title) {
  title_ = title;
  title_is_stored_ = false;
  StoreChanges();
}

void ChatTree::SetDraft(const std::string& draft) {
  if (draft == draft_) return;
  draft_ = draft;
  draft_is_stored_ = false;
  StoreChanges();
}

const StoredMessage* ChatTree::Find(int64_t id) const {
  const auto found = messages_.find(id);
  return found == messages_.end() ? nullptr : &found->second;
}

std::vector<const StoredMessage*> ChatTree::PathTo(int64_t id) const {
  std::vector<const StoredMessage*> path;
  for (const StoredMessage* message = Find(id); message != nullptr; message = Find(message->parent)) {
    path.push_back(message);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<int32_t> ChatTree::TokenIdsUpTo(int64_t id) const {
  std::vector<int32_t> ids;
  for (const StoredMessage* message : PathTo(id)) {
    const auto begin =
        static_cast<size_t>(std::clamp<int64_t>(message->ids_begin, 0, static_cast<int64_t>(ids.size())));
    ids.resize(begin);
    ids.insert(ids.end(), message->token_ids.begin(), message->token_ids.end());
  }
  return ids;
}

std::vector<int64_t> ChatTree::ChildrenOf(int64_t id) const {
  std::vector<int64_t> children;
  for (const auto& [child, message] : messages_) {
    if (message.parent == id) children.push_back(child);
  }
  return children;
}

std::vector<StoredMessage> ChatTree::AllMessages() const {
  std::vector<StoredMessage> all;
  for (const auto& entry : messages_) all.push_back(entry.second);
  return all;
}

int64_t ChatTree::NewestLeafBelow(int64_t id) const {
  std::map<int64_t, int64_t> newest_child;  // parent -> child
  for (const auto& [child, message] : messages_) newest_child[message.parent] = child;
  for (auto found = newest_child.find(id); found != newest_child.end(); found = newest_child.find(id)) {
    id = found->second;
  }
  return id;
}

std::string ChatTree::TakeNotice() { return std::exchange(notice_, ""); }

}  // namespace vllm::app
