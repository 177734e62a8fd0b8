#include "app/chats/chat_tree.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

StoredMessage Message(int64_t parent, int64_t ids_begin, std::vector<int32_t> ids) {
  StoredMessage message;
  message.parent = parent;
  message.ids_begin = ids_begin;
  message.token_ids = std::move(ids);
  return message;
}

class ChatTreeTest : public testing::Test {
 protected:
  std::string directory() const { return temp_.path() + "/vllmcli"; }
  StoredChat Stored(int64_t chat) const { return ChatStore(directory(), ChatStore::Access::kRead).Load(chat).value(); }
  // Replaces the file of the database with one that contains another conversation, which has number 1.
  void ReplaceDatabase() const {
    const std::string other_directory = temp_.path() + "/other";
    {
      ChatStore other(other_directory, ChatStore::Access::kWrite);
      ChatTree(&other).Add(Message(0, 0, {9}));
    }
    std::filesystem::rename(other_directory + "/chats.db", directory() + "/chats.db");
    for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(directory() + "/chats.db" + suffix);
  }

 private:
  TempDirectory temp_;
};

TEST_F(ChatTreeTest, TokensUpToAMessageReplaceThoseFromItsBeginning) {
  ChatTree tree(nullptr);
  const int64_t question = tree.Add(Message(0, 0, {1, 2, 3}));
  const int64_t answer = tree.Add(Message(question, 3, {4, 5}));
  const int64_t next = tree.Add(Message(answer, 4, {6}));
  const int64_t rewritten = tree.Add(Message(answer, 0, {7, 8}));
  EXPECT_EQ(tree.TokenIdsUpTo(answer), (std::vector<int32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(tree.TokenIdsUpTo(next), (std::vector<int32_t>{1, 2, 3, 4, 6}));
  EXPECT_EQ(tree.TokenIdsUpTo(rewritten), (std::vector<int32_t>{7, 8}));
  EXPECT_TRUE(tree.TokenIdsUpTo(0).empty());
  EXPECT_EQ(tree.ChildrenOf(answer), (std::vector<int64_t>{next, rewritten}));
  EXPECT_EQ(tree.NewestLeafBelow(question), rewritten);
  EXPECT_EQ(tree.PathTo(next).size(), 3u);
}

TEST_F(ChatTreeTest, StoredTreeIsOpenedAsItWas) {
  ChatStore store(directory(), ChatStore::Access::kWrite);
  int64_t chat = 0;
  int64_t question = 0;
  {
    ChatTree tree(&store);
    EXPECT_EQ(tree.chat_id(), 0);  // no row before the first message
    question = tree.Add(Message(0, 0, {1}));
    chat = tree.chat_id();
    tree.Add(Message(question, 1, {2}));
    tree.MoveTo(question);
    tree.SetTitle("title");
    tree.Begin();
  }
  ChatTree tree(&store);
  EXPECT_EQ(tree.Open(chat + 1), ChatTree::OpenResult::kMissing);
  ASSERT_EQ(tree.Open(chat), ChatTree::OpenResult::kOpened);
  EXPECT_EQ(tree.current_id(), question);
  EXPECT_EQ(tree.title(), "title");
  EXPECT_EQ(tree.AllMessages().size(), 2u);
  ChatStore other(directory(), ChatStore::Access::kWrite);
  EXPECT_EQ(ChatTree(&other).Open(chat), ChatTree::OpenResult::kLocked);
}

TEST_F(ChatTreeTest, ConversationIsStoredAgainIfTheDatabaseIsDeleted) {
  ChatStore store(directory(), ChatStore::Access::kWrite);
  ChatTree tree(&store);
  const int64_t question = tree.Add(Message(0, 0, {1}));
  tree.SetTitle("title");
  EXPECT_EQ(tree.TakeNotice(), "");
  std::filesystem::remove_all(directory());
  tree.Add(Message(question, 1, {2}));
  EXPECT_NE(tree.TakeNotice().find("was deleted or replaced"), std::string::npos);
  EXPECT_EQ(tree.TakeNotice(), "");
  const StoredChat stored = Stored(tree.chat_id());
  EXPECT_EQ(stored.title, "title");
  ASSERT_EQ(stored.messages.size(), 2u);
  EXPECT_EQ(stored.messages[1].parent, stored.messages[0].id);
  EXPECT_EQ(stored.messages[1].token_ids, (std::vector<int32_t>{2}));
}

TEST_F(ChatTreeTest, ConversationIsStoredAgainInAFileThatReplacesTheDatabase) {
  ChatStore store(directory(), ChatStore::Access::kWrite);
  ChatTree tree(&store);
  const int64_t question = tree.Add(Message(0, 0, {1}));
  ReplaceDatabase();
  const int64_t answer = tree.Add(Message(question, 1, {2}));
  EXPECT_EQ(tree.chat_id(), 2);
  EXPECT_NE(tree.TakeNotice().find("as number 2"), std::string::npos);
  tree.MoveTo(question);
  const StoredChat stored = Stored(2);
  ASSERT_EQ(stored.messages.size(), 2u);
  EXPECT_EQ(stored.current_message, stored.messages[0].id);
  EXPECT_EQ(tree.TokenIdsUpTo(answer), (std::vector<int32_t>{1, 2}));
}

TEST_F(ChatTreeTest, NewConversationIsNotWrittenWhileAnotherProcessHasItsLock) {
  ChatStore store(directory(), ChatStore::Access::kWrite);
  ChatTree tree(&store);
  ChatStore other(directory(), ChatStore::Access::kWrite);
  ASSERT_TRUE(other.LockChat(1));  // the number that the new conversation gets
  tree.Add(Message(0, 0, {1}));
  ASSERT_EQ(tree.chat_id(), 1);
  EXPECT_TRUE(tree.is_behind());
  EXPECT_TRUE(other.Load(1).value().messages.empty());
  other.UnlockChat();
  EXPECT_TRUE(tree.StoreAll());
  EXPECT_EQ(other.Load(1).value().messages.size(), 1u);
  EXPECT_FALSE(other.LockChat(1));
}

// A connection of another program that holds the write lock.
class OtherProgram {
 public:
  explicit OtherProgram(const std::string& path) {
    sqlite3_open(path.c_str(), &connection_);
    Run("BEGIN IMMEDIATE");
  }
  ~OtherProgram() { sqlite3_close(connection_); }
  void Unlock() { Run("ROLLBACK"); }

 private:
  void Run(const char* sql) { EXPECT_EQ(sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql; }
  sqlite3* connection_ = nullptr;
};

TEST_F(ChatTreeTest, EverythingIsStoredAfterALockOfAnotherProgramEnds) {
  ChatStore store(directory(), ChatStore::Access::kWrite);
  ChatTree tree(&store);
  const int64_t question = tree.Add(Message(0, 0, {1}));
  OtherProgram other(directory() + "/chats.db");
  store.SetWaiting(false);
  StoredMessage answer = Message(question, 1, {2});
  answer.id = tree.Add(answer);
  EXPECT_NE(tree.TakeNotice().find("locked by another process"), std::string::npos);
  answer.token_ids = {2, 3};
  tree.Update(answer);
  const int64_t next = tree.Add(Message(answer.id, 3, {4}));
  const int64_t sibling = tree.Add(Message(answer.id, 3, {5}));
  tree.SetTitle("title");
  tree.MoveTo(next);
  EXPECT_EQ(tree.TakeNotice(), "");  // one warning is enough
  EXPECT_THROW(tree.Begin(), StoreError);
  EXPECT_EQ(tree.AllMessages().size(), 4u);
  other.Unlock();
  tree.MoveTo(sibling);
  EXPECT_NE(tree.TakeNotice().find("stored again"), std::string::npos);
  const StoredChat stored = Stored(tree.chat_id());
  ASSERT_EQ(stored.messages.size(), 4u);
  EXPECT_EQ(stored.messages[1].token_ids, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(stored.messages[3].parent, stored.messages[1].id);
  EXPECT_EQ(stored.current_message, stored.messages[3].id);
  EXPECT_EQ(stored.title, "title");
  tree.Begin();
  EXPECT_TRUE(tree.empty());
}

TEST_F(ChatTreeTest, EverythingIsStoredIfTheLockBeganBeforeTheConversation) {
  ChatStore(directory(), ChatStore::Access::kWrite).CreateChat();
  OtherProgram other(directory() + "/chats.db");
  ChatStore store(directory(), ChatStore::Access::kWrite);
  store.SetWaiting(false);
  ChatTree tree(&store);
  const int64_t question = tree.Add(Message(0, 0, {1}));
  EXPECT_NE(tree.TakeNotice().find("locked by another process"), std::string::npos);
  tree.SetTitle("title");
  EXPECT_EQ(tree.TakeNotice(), "");
  EXPECT_EQ(tree.chat_id(), 0);
  other.Unlock();
  tree.Add(Message(question, 1, {2}));
  EXPECT_NE(tree.TakeNotice().find("stored again"), std::string::npos);
  const StoredChat stored = Stored(tree.chat_id());
  EXPECT_EQ(stored.title, "title");
  ASSERT_EQ(stored.messages.size(), 2u);
  EXPECT_EQ(stored.messages[1].parent, stored.messages[0].id);
}

TEST_F(ChatTreeTest, ConversationGetsAnotherNumberInALockedFileThatReplacesTheDatabase) {
  ChatStore store(directory(), ChatStore::Access::kWrite);
  ChatTree tree(&store);
  const int64_t question = tree.Add(Message(0, 0, {1}));
  ASSERT_EQ(tree.chat_id(), 1);
  ReplaceDatabase();
  OtherProgram other(directory() + "/chats.db");
  store.SetWaiting(false);
  tree.Add(Message(question, 1, {2}));
  EXPECT_NE(tree.TakeNotice().find("locked by another process"), std::string::npos);
  other.Unlock();
  tree.MoveTo(question);
  EXPECT_EQ(tree.chat_id(), 2);
  EXPECT_EQ(Stored(1).messages.size(), 1u);
  EXPECT_EQ(Stored(2).messages.size(), 2u);
}

TEST_F(ChatTreeTest, ChangesThatCannotBeStoredAreGivenUpByASecondBegin) {
  ChatStore store(directory(), ChatStore::Access::kWrite);
  ChatTree tree(&store);
  OtherProgram other(directory() + "/chats.db");
  store.SetWaiting(false);
  tree.Add(Message(0, 0, {1}));
  EXPECT_THROW(tree.Begin(), StoreError);
  tree.Begin();
  EXPECT_TRUE(tree.empty());
  other.Unlock();
  EXPECT_TRUE(store.List(10).empty());
}

TEST_F(ChatTreeTest, DraftIsStoredWithTheConversation) {
  int64_t chat = 0;
  {
    ChatStore store(directory(), ChatStore::Access::kWrite);
    ChatTree tree(&store);
    tree.SetDraft("before the first message");  // there is no row yet
    tree.Add(Message(0, 0, {1}));
    chat = tree.chat_id();
    tree.SetDraft("not sent");
  }
  ChatStore store(directory(), ChatStore::Access::kWrite);
  ChatTree tree(&store);
  ASSERT_EQ(tree.Open(chat), ChatTree::OpenResult::kOpened);
  EXPECT_EQ(tree.draft(), "not sent");
  tree.SetDraft("");
  EXPECT_EQ(store.Load(chat)->draft, "");
}

TEST_F(ChatTreeTest, DeletedConversationIsNotListed) {
  ChatStore store(directory(), ChatStore::Access::kWrite);
  ChatTree tree(&store);
  tree.Add(Message(0, 0, {1}));
  EXPECT_TRUE(tree.Delete());
  EXPECT_TRUE(tree.empty());
  EXPECT_TRUE(store.List(10).empty());
}

TEST_F(ChatTreeTest, ParentsInACraftedFileCannotFormACycle) {
  ChatStore store(directory(), ChatStore::Access::kWrite);
  const int64_t chat = store.CreateChat();
  const int64_t first = store.AddMessage(chat, Message(2, 0, {1}));
  const int64_t second = store.AddMessage(chat, Message(1, 1000, {2}));
  ChatTree tree(&store);
  ASSERT_EQ(tree.Open(chat), ChatTree::OpenResult::kOpened);
  EXPECT_EQ(tree.Find(first)->parent, 0);
  EXPECT_EQ(tree.TokenIdsUpTo(second), (std::vector<int32_t>{1, 2}));
}

TEST_F(ChatTreeTest, MessagesWithIdsThatNoProgramWritesAreLeftOut) {
  ChatStore store(directory(), ChatStore::Access::kWrite);
  const int64_t chat = store.CreateChat();
  for (int i = 0; i < 3; ++i) store.AddMessage(chat, Message(0, 0, {i}));
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open((directory() + "/chats.db").c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(connection,
                         "UPDATE messages SET id = 0, parent = 0 WHERE id = 1;"
                         "UPDATE messages SET id = 9223372036854775807 WHERE id = 3;"
                         "UPDATE message_tokens SET message = 0 WHERE message = 1;"
                         "UPDATE message_tokens SET message = 9223372036854775807 WHERE message = 3;"
                         "UPDATE chats SET current_message = 0",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(connection);
  ChatTree tree(&store);
  ASSERT_EQ(tree.Open(chat), ChatTree::OpenResult::kOpened);
  EXPECT_EQ(tree.AllMessages().size(), 1u);
  EXPECT_TRUE(tree.PathTo(0).empty());
}

}  // namespace
}  // namespace vllm::app
