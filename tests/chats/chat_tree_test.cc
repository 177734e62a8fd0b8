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

TEST_F(ChatTreeTest, ConversationContinuesInMemoryIfTheDatabaseFails) {
  ChatStore store(directory(), ChatStore::Access::kWrite);
  ChatTree tree(&store);
  const int64_t question = tree.Add(Message(0, 0, {1}));
  EXPECT_EQ(tree.TakeError(), "");
  std::filesystem::remove_all(directory());
  const int64_t answer = tree.Add(Message(question, 1, {2}));
  EXPECT_NE(tree.TakeError().find("was deleted or replaced"), std::string::npos);
  EXPECT_EQ(tree.TakeError(), "");
  EXPECT_EQ(tree.chat_id(), 0);
  tree.MoveTo(question);
  tree.SetTitle("title");
  EXPECT_EQ(tree.TokenIdsUpTo(answer), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(tree.TakeError(), "");
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
