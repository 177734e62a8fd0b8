#include "app/chats/chat_tree.h"

#include <algorithm>
#include <utility>

namespace vllm::app {
namespace {

constexpr int64_t kMaxMessageId = int64_t{1} << 62;

}  // namespace

template <typename Write>
void ChatTree::Store(const Write& write) {
  if (store_ == nullptr) return;
  try {
    write();
  } catch (const StoreError& error) {
    error_ = error.what();
    store_ = nullptr;
    chat_id_ = 0;
  }
}

void ChatTree::Begin() {
  if (store_ != nullptr) store_->UnlockChat();
  chat_id_ = 0;
  title_.clear();
  messages_.clear();
  current_ = 0;
}

ChatTree::OpenResult ChatTree::Open(int64_t chat) {
  if (chat < 1) return OpenResult::kMissing;
  if (chat == chat_id_) return OpenResult::kOpened;
  const int64_t previous = chat_id_;
  if (!store_->LockChat(chat)) return OpenResult::kLocked;
  std::optional<StoredChat> stored = store_->Load(chat);
  if (!stored) {
    if (previous == 0 || !store_->LockChat(previous)) store_->UnlockChat();
    return OpenResult::kMissing;
  }
  chat_id_ = chat;
  messages_.clear();
  title_ = std::move(stored->title);
  for (StoredMessage& message : stored->messages) {
    // A crafted file could have ids that overflow, cycles or missing parents. Parents have smaller ids.
    if (message.id < 1 || message.id > kMaxMessageId) continue;
    if (message.parent != 0 && (message.parent >= message.id || Find(message.parent) == nullptr)) message.parent = 0;
    messages_.emplace(message.id, std::move(message));
  }
  current_ = Find(stored->current_message) != nullptr ? stored->current_message : 0;
  return OpenResult::kOpened;
}

int64_t ChatTree::Add(StoredMessage message) {
  message.created_ms = NowMs();
  message.id = messages_.empty() ? 1 : messages_.rbegin()->first + 1;
  Store([&] {
    if (chat_id_ == 0) {
      chat_id_ = store_->CreateChat(title_);
      store_->LockChat(chat_id_);
    }
    message.id = store_->AddMessage(chat_id_, message);
  });
  current_ = message.id;
  messages_.emplace(message.id, std::move(message));
  return current_;
}

void ChatTree::Update(const StoredMessage& message) {
  messages_.at(message.id) = message;
  if (chat_id_ != 0) Store([&] { store_->UpdateMessage(chat_id_, message); });
}

void ChatTree::MoveTo(int64_t id) {
  current_ = id;
  if (chat_id_ != 0) Store([&] { store_->SetCurrentMessage(chat_id_, id); });
}

void ChatTree::SetTitle(const std::string& title) {
  title_ = title;
  if (chat_id_ != 0) Store([&] { store_->SetTitle(chat_id_, title); });
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

std::string ChatTree::TakeError() { return std::exchange(error_, ""); }

}  // namespace vllm::app
