#include "app/chats/chat_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "app/chats/chat_schema.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

StoredMessage Message(ChatRole role, int64_t parent, std::string text, std::vector<int32_t> ids = {}) {
  StoredMessage message;
  message.role = role;
  message.parent = parent;
  message.text = std::move(text);
  message.token_ids = std::move(ids);
  message.created_ms = 1;
  return message;
}

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ChatStoreTest : public testing::Test {
 protected:
  std::string path() const { return directory() + "/chats.db"; }
  std::string directory() const { return temp_.path() + "/vllmcli"; }
  ChatStore Open(ChatStore::Access access = ChatStore::Access::kWrite) { return ChatStore(directory(), access); }
  std::string OpenError(ChatStore::Access access = ChatStore::Access::kWrite) {
    return MessageOf<StoreError>([&] { Open(access); });
  }
  // Adds a conversation with one question and one answer.
  static int64_t AddChat(ChatStore& store, const std::string& question, const std::string& answer) {
    const int64_t chat = store.CreateChat();
    const int64_t asked = store.AddMessage(chat, Message(ChatRole::kUser, 0, question));
    store.AddMessage(chat, Message(ChatRole::kAssistant, asked, answer));
    return chat;
  }

 private:
  TempDirectory temp_;
};

TEST_F(ChatStoreTest, FilesArePrivate) {
  ChatStore store = Open();
  AddChat(store, "a", "b");
  for (const auto& entry : std::filesystem::directory_iterator(directory())) {
    struct stat status {};
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777u, 0600u) << entry.path();
  }
  struct stat status {};
  ASSERT_EQ(stat(directory().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0700u);
}

TEST_F(ChatStoreTest, MessagesAreLoadedAsTheyWereStored) {
  StoredMessage answer = Message(ChatRole::kAssistant, 0, "p\0q \xF0\x9F\x98\x80", {0, -1, 151643, INT32_MAX});
  answer.text = std::string("p\0q", 3);
  answer.ids_begin = 7;
  answer.context_first = 3;
  answer.model = "SmolLM2";
  answer.model_digest = 0xFEDCBA9876543210u;
  answer.sampling_params = R"({"seed":18446744073709551615})";
  answer.finish_reason = "length";
  answer.created_ms = 1'700'000'000'000;
  answer.finished_ms = 1'700'000'000'001;
  int64_t chat = 0;
  {
    ChatStore store = Open();
    chat = store.CreateChat("a title");
    answer.parent = store.AddMessage(chat, Message(ChatRole::kUser, 0, ""));
    answer.id = store.AddMessage(chat, answer);
  }
  ChatStore store = Open(ChatStore::Access::kRead);
  const std::optional<StoredChat> loaded = store.Load(chat);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->title, "a title");
  EXPECT_EQ(loaded->current_message, answer.id);
  ASSERT_EQ(loaded->messages.size(), 2u);
  const StoredMessage& got = loaded->messages[1];
  EXPECT_EQ(got.id, answer.id);
  EXPECT_EQ(got.parent, answer.parent);
  EXPECT_EQ(got.role, ChatRole::kAssistant);
  EXPECT_EQ(got.text, answer.text);
  EXPECT_EQ(got.ids_begin, 7);
  EXPECT_EQ(got.token_ids, answer.token_ids);
  EXPECT_EQ(got.context_first, 3);
  EXPECT_EQ(got.model, "SmolLM2");
  EXPECT_EQ(got.model_digest, answer.model_digest);
  EXPECT_EQ(got.sampling_params, answer.sampling_params);
  EXPECT_EQ(got.finish_reason, "length");
  EXPECT_EQ(got.created_ms, answer.created_ms);
  EXPECT_EQ(got.finished_ms, answer.finished_ms);
  EXPECT_FALSE(store.Load(chat + 1));
}

TEST_F(ChatStoreTest, UpdatedMessageIsFoundByItsNewTextOnly) {
  ChatStore store = Open();
  const int64_t chat = store.CreateChat();
  StoredMessage answer = Message(ChatRole::kAssistant, 0, "half", {1});
  answer.id = store.AddMessage(chat, answer);
  answer.text = "complete";
  answer.token_ids = {1, 2};
  answer.finish_reason = "stop";
  store.UpdateMessage(chat, answer);
  EXPECT_EQ(store.Load(chat)->messages[0].token_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(store.Load(chat)->messages[0].finish_reason, "stop");
  EXPECT_TRUE(store.Search("half", 10).empty());
  EXPECT_EQ(store.Search("complete", 10).size(), 1u);
  EXPECT_THROW(store.UpdateMessage(chat + 1, answer), StoreError);
}

TEST_F(ChatStoreTest, ListIsSortedByTheLastChange) {
  ChatStore store = Open();
  const int64_t first = AddChat(store, "first question", "x");
  const int64_t second = AddChat(store, "second question", "y");
  store.SetTitle(second, "named");
  // Conversations that changed in the same millisecond are sorted by id.
  for (const int64_t begin = NowMs(); NowMs() == begin;) {
  }
  store.SetCurrentMessage(first, 1);
  const std::vector<ChatSummary> list = store.List(10);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].id, first);
  EXPECT_EQ(list[0].title, "first question");
  EXPECT_EQ(list[0].num_messages, 2);
  EXPECT_EQ(list[1].id, second);
  EXPECT_EQ(list[1].title, "named");
  EXPECT_EQ(store.List(1).size(), 1u);
  EXPECT_EQ(store.FindByTitle("QUEST", 10).size(), 1u);
  EXPECT_EQ(store.FindByTitle("name", 10).size(), 1u);
  EXPECT_TRUE(store.FindByTitle("%", 10).empty());
  EXPECT_TRUE(store.FindByTitle("q_estion", 10).empty());
}

TEST_F(ChatStoreTest, SearchFindsWordBeginningsWithoutAccents) {
  ChatStore store = Open();
  const int64_t chat = AddChat(store, "Where is the café?", "It's \"up\" the hill.");
  ASSERT_EQ(store.Search("cafe", 10).size(), 1u);
  EXPECT_EQ(store.Search("cafe", 10)[0].chat, chat);
  EXPECT_EQ(store.Search("cafe", 10)[0].role, ChatRole::kUser);
  EXPECT_EQ(store.Search("caf whe", 10).size(), 1u);
  EXPECT_TRUE(store.Search("cafe hill", 10).empty());
  // Text that is not valid FTS5 syntax.
  EXPECT_EQ(store.Search("it's \"up", 10).size(), 1u);
  EXPECT_TRUE(store.Search("AND", 10).empty());
  EXPECT_TRUE(store.Search("  ", 10).empty());
  EXPECT_TRUE(store.Search("* OR NEAR(", 10).empty());
}

TEST_F(ChatStoreTest, SearchFindsTwoChineseCharactersInsideASentence) {
  ChatStore store = Open();
  AddChat(store, "如何减少内存消耗并提高速度？", "使用较小的模型。");
  const std::vector<SearchHit> hits = store.Search("消耗", 10);
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].snippet, "如何减少内存消耗并提高速度？");
  EXPECT_EQ(store.Search("模型", 10).size(), 1u);
  EXPECT_TRUE(store.Search("消费", 10).empty());
}

TEST_F(ChatStoreTest, SearchFindsPartsOfWordsIfNoWordBeginsWithTheQuery) {
  ChatStore store = Open();
  AddChat(store, "about kMaxTextBytes", "100%");
  EXPECT_EQ(store.Search("textbyte", 10).size(), 1u);
  EXPECT_EQ(store.Search("0%", 10).size(), 1u);
}

TEST_F(ChatStoreTest, DeletedTextIsInNoFile) {
  ChatStore store = Open();
  AddChat(store, "kept-question", "kept-answer");
  const int64_t chat = store.CreateChat("secret-title");
  StoredMessage answer = Message(ChatRole::kAssistant, 0, "secret-draft");
  answer.id = store.AddMessage(chat, answer);
  answer.text = "secret-answer " + std::string(20'000, 'x') + " secret-tail";
  store.UpdateMessage(chat, answer);
  EXPECT_TRUE(store.DeleteChat(chat));
  EXPECT_FALSE(store.DeleteChat(chat));
  EXPECT_TRUE(store.EraseDeleted());
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator(directory())) all += FileText(entry.path());
  EXPECT_EQ(all.find("secret"), std::string::npos);
  EXPECT_NE(all.find("kept-answer"), std::string::npos);
  EXPECT_EQ(store.Search("secret", 10).size(), 0u);
  EXPECT_EQ(store.Search("kept", 10).size(), 2u);
}

TEST_F(ChatStoreTest, IdsOfDeletedChatsAreNotUsedAgain) {
  ChatStore store = Open();
  const int64_t chat = AddChat(store, "a", "b");
  store.DeleteChat(chat);
  EXPECT_GT(store.CreateChat(), chat);
}

TEST_F(ChatStoreTest, ChatIsLockedForOneProcess) {
  ChatStore store = Open();
  EXPECT_TRUE(store.LockChat(1));
  EXPECT_TRUE(store.LockChat(1));
  const pid_t child = fork();
  if (child == 0) {
    ChatStore other = Open();
    const bool as_expected = !other.LockChat(1) && other.LockChat(2);
    _exit(as_expected ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ChatStore other = Open();
  EXPECT_FALSE(other.LockChat(1));
  EXPECT_TRUE(other.LockChat(2));  // the child's lock ended with it
  store.UnlockChat();
  EXPECT_TRUE(other.LockChat(1));
}

TEST_F(ChatStoreTest, ForeignAndNewerFilesAreRejectedUnchanged) {
  std::filesystem::create_directories(directory());
  std::ofstream(path()) << "not a database, but long enough to have a header of one hundred bytes "
                        << std::string(100, '.');
  EXPECT_NE(OpenError().find("file is not a database"), std::string::npos) << OpenError();
  std::filesystem::remove(path());
  const auto run = [&](const std::string& sql) {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &connection), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(connection);
  };
  run("CREATE TABLE theirs(x)");
  const std::string foreign = FileText(path());
  EXPECT_NE(OpenError().find("not a chats database of vllmcli"), std::string::npos) << OpenError();
  EXPECT_TRUE(FileText(path()) == foreign);
  std::filesystem::remove(path());
  Open();
  run("PRAGMA user_version = 999");
  const std::string newer = FileText(path());
  EXPECT_NE(OpenError().find("newer vllmcli (schema version 999"), std::string::npos) << OpenError();
  EXPECT_NE(OpenError(ChatStore::Access::kRead).find("schema version 999"), std::string::npos);
  EXPECT_TRUE(FileText(path()) == newer);
}

TEST_F(ChatStoreTest, CallsAndResultsOfToolsAreStored) {
  ChatStore store = Open();
  const int64_t chat = store.CreateChat();
  StoredMessage answer = Message(ChatRole::kAssistant, 0, "", {7});
  answer.id = store.AddMessage(chat, answer);
  answer.tool_calls = R"([{"id":"a","type":"function","function":{"name":"f","arguments":{}}}])";
  store.UpdateMessage(chat, answer);
  StoredMessage result = Message(ChatRole::kTool, answer.id, "5", {});
  result.tool_call_id = "a";
  result.tool_name = "f";
  result.id = store.AddMessage(chat, result);
  result.ids_begin = 1;
  result.token_ids = {8};
  result.context_first = answer.id;
  result.template_variables = "{}";
  store.UpdateMessage(chat, result);
  const std::optional<StoredChat> loaded = store.Load(chat);
  ASSERT_EQ(loaded->messages.size(), 2u);
  EXPECT_EQ(loaded->messages[0].tool_calls, answer.tool_calls);
  const StoredMessage& stored = loaded->messages[1];
  EXPECT_EQ(stored.role, ChatRole::kTool);
  EXPECT_EQ(stored.tool_call_id, "a");
  EXPECT_EQ(stored.tool_name, "f");
  EXPECT_EQ(stored.ids_begin, 1);
  EXPECT_EQ(stored.token_ids, (std::vector<int32_t>{8}));
  EXPECT_EQ(stored.context_first, answer.id);
  EXPECT_EQ(stored.template_variables, "{}");
}

TEST_F(ChatStoreTest, ThoughtsAreStored) {
  ChatStore store = Open();
  const int64_t chat = store.CreateChat();
  StoredMessage question = Message(ChatRole::kUser, 0, "why?", {1, 2});
  question.template_variables = "{\"enable_thinking\":true}";
  question.id = store.AddMessage(chat, question);
  StoredMessage answer = Message(ChatRole::kAssistant, question.id, "", {7});
  answer.thinking = "because";
  answer.num_thinking_ids = 1;
  answer.id = store.AddMessage(chat, answer);
  answer.thinking = "because of";
  answer.num_thinking_ids = 2;
  answer.thinking_ms = 1500;
  answer.text = "That is why.";
  answer.token_ids = {7, 8, 9};
  store.UpdateMessage(chat, answer);
  const std::optional<StoredChat> loaded = store.Load(chat);
  ASSERT_EQ(loaded->messages.size(), 2u);
  EXPECT_EQ(loaded->messages[0].template_variables, question.template_variables);
  EXPECT_EQ(loaded->messages[1].thinking, "because of");
  EXPECT_EQ(loaded->messages[1].num_thinking_ids, 2);
  EXPECT_EQ(loaded->messages[1].thinking_ms, 1500);
  EXPECT_TRUE(store.Search("because", 5).empty()) << "only texts are searched";
}

TEST_F(ChatStoreTest, LinksAndMissingFilesAreRejected) {
  EXPECT_NE(OpenError(ChatStore::Access::kRead), "");
  EXPECT_FALSE(std::filesystem::exists(directory()));
  std::filesystem::create_directories(directory());
  std::ofstream(directory() + "/other.db");
  std::filesystem::create_symlink("other.db", path());
  EXPECT_NE(OpenError(), "");
  EXPECT_NE(OpenError(ChatStore::Access::kRead), "");
}

TEST_F(ChatStoreTest, SeveralProcessesMayCreateTheFileAtOnce) {
  for (int round = 0; round < 10; ++round) {
    std::filesystem::remove_all(directory());
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) {
      const pid_t child = fork();
      if (child == 0) _exit(OpenError().empty() ? 0 : 1);
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0) << round;
    }
    EXPECT_EQ(OpenError(), "");
  }
}

TEST_F(ChatStoreTest, DirectoryMayBeReachedThroughALink) {
  std::filesystem::create_directories(directory() + "/real");
  std::filesystem::create_directory_symlink("real", directory() + "/link");
  const std::string linked = directory() + "/link/vllmcli";
  EXPECT_EQ(ChatStore(linked, ChatStore::Access::kWrite).CreateChat(), 1);
  EXPECT_EQ(ChatStore(linked, ChatStore::Access::kRead).List(1).size(), 1u);
}

TEST_F(ChatStoreTest, WritingToAReplacedFileIsAnError) {
  ChatStore store = Open();
  const int64_t chat = store.CreateChat();
  std::filesystem::remove(path());
  EXPECT_THROW(store.AddMessage(chat, Message(ChatRole::kUser, 0, "a")), StoreError);
  std::ofstream(path()) << "";
  EXPECT_THROW(store.CreateChat(), StoreError);
}

// A database that the first released schema wrote, by a chat with the bundled model.
TEST_F(ChatStoreTest, DatabaseOfVersion1IsMigratedWithAllItsMessages) {
  for (const ChatStore::Access access : {ChatStore::Access::kWrite, ChatStore::Access::kRead}) {
    std::filesystem::remove_all(directory());
    std::filesystem::create_directories(directory());
    std::filesystem::copy_file(VLLMCLI_TEST_DATA "/chats/version1.db", path());
    ChatStore store = Open(access);
    const std::vector<ChatSummary> chats = store.List(10);
    ASSERT_EQ(chats.size(), 2u);
    EXPECT_EQ(chats[1].title, "First database");
    EXPECT_EQ(store.Load(chats[1].id)->draft, "");
    const StoredChat first = store.Load(1).value();
    ASSERT_EQ(first.messages.size(), 7u);
    EXPECT_EQ(first.current_message, 7);
    EXPECT_EQ(first.messages[0].text, "How do I run a batch?");
    EXPECT_EQ(first.messages[6].parent, 5);
    EXPECT_EQ(first.messages[6].token_ids.size(), 12u);
    EXPECT_EQ(first.messages[6].finish_reason, "length");
    EXPECT_EQ(first.messages[6].thinking, "");
    EXPECT_EQ(first.messages[6].num_thinking_ids, 0);
    EXPECT_EQ(first.messages[5].template_variables, "");
    EXPECT_EQ(store.Load(2)->messages[0].role, ChatRole::kSystem);
    ASSERT_EQ(store.Search("cafe", 10).size(), 1u);
    EXPECT_EQ(store.Search("你好", 10).size(), 1u);
  }
}

TEST_F(ChatStoreTest, DatabaseIsReadFromADirectoryThatIsNotWritable) {
  const int64_t chat = [&] {
    ChatStore store = Open();
    return AddChat(store, "question", "answer");
  }();
  std::filesystem::remove(path() + "-shm");
  std::filesystem::remove(path() + "-wal");
  // Permissions do not bind root, so root reads as another user.
  ASSERT_EQ(chmod(std::filesystem::path(directory()).parent_path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(path().c_str(), 0644), 0);
  const auto child_reads = [&] {
    EXPECT_EQ(chmod(directory().c_str(), 0555), 0);
    const pid_t child = fork();
    if (child == 0) {
      if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
      try {
        _exit(Open(ChatStore::Access::kRead).Load(chat)->messages.size() == 2 ? 0 : 1);
      } catch (const StoreError& error) {
        _exit(std::string_view(error.what()).find("write-ahead log") == std::string_view::npos ? 3 : 4);
      }
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(chmod(directory().c_str(), 0755), 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(child_reads(), 0);
  std::ofstream(path() + "-wal") << "pages that are not in the file";
  EXPECT_EQ(child_reads(), 4);
}

// A process that is killed in a transaction loses only that transaction.
TEST_F(ChatStoreTest, KilledWriterLeavesAllCommittedMessages) {
  const int64_t chat = Open().CreateChat();
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    ChatStore store = Open();
    for (int64_t i = 0;; ++i) {
      const int64_t id = store.AddMessage(chat, Message(ChatRole::kUser, 0, "message " + std::to_string(i)));
      if (write(pipe_fds[1], &id, sizeof id) != sizeof id) _exit(1);
    }
  }
  close(pipe_fds[1]);
  int64_t last = 0;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(read(pipe_fds[0], &last, sizeof last), ssize_t{sizeof last});
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  while (read(pipe_fds[0], &last, sizeof last) == ssize_t{sizeof last}) {
  }
  close(pipe_fds[0]);
  ChatStore store = Open();
  const std::vector<StoredMessage> messages = store.Load(chat)->messages;
  EXPECT_GE(static_cast<int64_t>(messages.size()), last);
  for (size_t i = 0; i < messages.size(); ++i) EXPECT_EQ(messages[i].text, "message " + std::to_string(i));
}

}  // namespace
}  // namespace vllm::app
