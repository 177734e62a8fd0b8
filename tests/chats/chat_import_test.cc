#include "app/chats/chat_import.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "app/chats/chat_export.h"
#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

class ChatImportTest : public testing::Test {
 protected:
  ImportResult Import(const std::string& text) { return ImportChats(temp_.Write("input", text), store_); }
  std::string ErrorOf(const std::string& text) {
    return MessageOf<ConfigError>([&] { Import(text); });
  }
  // Returns "role: text" for each message of the current branch.
  std::vector<std::string> Texts(int64_t chat) {
    const StoredChat stored = *store_.Load(chat);
    std::vector<std::string> texts;
    for (const StoredMessage* message : CurrentPath(stored)) {
      texts.push_back(std::string(RoleName(message->role)) + ": " + message->text);
    }
    return texts;
  }

  TempDirectory temp_;
  ChatStore store_{temp_.path() + "/vllmcli", ChatStore::Access::kWrite};
};

// Two branches, an empty system message, the result of a tool, and an image next to text.
constexpr char kChatGpt[] = R"json([
  {"title": "Whales", "create_time": 1700000000.5, "update_time": 1700000100, "current_node": "answer2", "mapping": {
    "root": {"message": null, "parent": null, "children": ["system"]},
    "system": {"message": {"author": {"role": "system"}, "content": {"parts": [""]}}, "parent": "root",
               "children": ["question"]},
    "question": {"message": {"author": {"role": "user"}, "create_time": 1700000001,
                             "content": {"parts": [{"image": 1}, "What is", "this?"]}},
                 "parent": "system", "children": ["answer1", "tool"]},
    "answer1": {"message": {"author": {"role": "assistant"}, "content": {"parts": ["A fish."]}}, "parent": "question",
                "children": []},
    "tool": {"message": {"author": {"role": "tool"}, "content": {"parts": ["{}"]}}, "parent": "question",
             "children": ["answer2"]},
    "answer2": {"message": {"author": {"role": "assistant"}, "metadata": {"model_slug": "gpt-9"},
                            "content": {"parts": ["A whale."]}}, "parent": "tool", "children": ["answer2"]}
  }},
  {"title": "broken", "mapping": 5},
  {"title": "empty", "mapping": {"root": {"message": null, "parent": null, "children": []}}},
  7
])json";

TEST_F(ChatImportTest, ChatGptsTreeIsImportedWithItsBranches) {
  const ImportResult result = Import(kChatGpt);
  EXPECT_EQ(result.num_chats, 1);
  EXPECT_EQ(result.num_messages, 3);
  ASSERT_EQ(result.errors.size(), 3u);
  EXPECT_EQ(result.errors[0], "conversation 2: mapping: not an object");
  EXPECT_EQ(result.errors[1], "conversation 3: no messages with text");
  EXPECT_EQ(Texts(1), (std::vector<std::string>{"user: What is\nthis?", "assistant: A whale."}));
  const StoredChat chat = *store_.Load(1);
  EXPECT_EQ(chat.title, "Whales");
  EXPECT_EQ(chat.created_ms, 1'700'000'000'500);
  ASSERT_EQ(chat.messages.size(), 3u);
  EXPECT_EQ(chat.messages[1].text, "A fish.");
  EXPECT_EQ(chat.messages[2].model, "gpt-9");
  EXPECT_EQ(chat.messages[0].created_ms, 1'700'000'001'000);
  EXPECT_TRUE(chat.messages[0].token_ids.empty());
}

TEST_F(ChatImportTest, CyclesAndUnknownNodesEnd) {
  const ImportResult result = Import(R"([{"current_node": "x", "mapping": {
    "a": {"message": {"author": {"role": "user"}, "content": {"parts": ["one"]}}, "parent": "none",
          "children": ["b", "missing", 5]},
    "b": {"message": {"author": {"role": "user"}, "content": {"parts": ["two"]}}, "parent": "a",
          "children": ["a", "b"]}}}])");
  EXPECT_EQ(result.num_messages, 2);
  EXPECT_EQ(Texts(1), (std::vector<std::string>{"user: one", "user: two"}));
}

TEST_F(ChatImportTest, ExportedChatIsImportedWithoutLoss) {
  StoredChat chat;
  chat.title = "mine";
  chat.created_ms = 5;
  chat.updated_ms = 6;
  for (int64_t id = 1; id <= 3; ++id) {
    StoredMessage message;
    message.id = id;
    message.parent = id == 3 ? 1 : id - 1;
    message.role = id == 1 ? ChatRole::kUser : ChatRole::kAssistant;
    message.text = "text " + std::to_string(id);
    message.ids_begin = id;
    message.token_ids = {1, 2, static_cast<int32_t>(id)};
    message.context_first = 0;
    message.model = "model";
    message.model_digest = 0xFEDCBA9876543210u;
    message.sampling_params = "{\"seed\":1}";
    message.finish_reason = "stop";
    message.created_ms = 7;
    message.finished_ms = 8;
    chat.messages.push_back(message);
  }
  chat.current_message = 2;
  const int64_t first = store_.AddChat(chat);
  EXPECT_EQ(Import(ExportText(*store_.Load(first), "x.json")).num_messages, 3);
  // Only the numbers of the conversation and its messages differ.
  nlohmann::ordered_json original = JsonOf(*store_.Load(first));
  nlohmann::ordered_json copy = JsonOf(*store_.Load(first + 1));
  for (nlohmann::ordered_json* json : {&original, &copy}) {
    const int64_t base = (*json)["messages"][0]["id"].get<int64_t>() - 1;
    (*json)["id"] = 0;
    (*json)["current_message"] = (*json)["current_message"].get<int64_t>() - base;
    for (nlohmann::ordered_json& message : (*json)["messages"]) {
      message["id"] = message["id"].get<int64_t>() - base;
      if (message["parent"] != 0) message["parent"] = message["parent"].get<int64_t>() - base;
    }
  }
  EXPECT_EQ(original, copy);
}

TEST_F(ChatImportTest, LogsOfLlmAreImportedInOrder) {
  const std::string path = temp_.path() + "/logs.db";
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(connection,
                   "CREATE TABLE conversations(id TEXT PRIMARY KEY, name TEXT, model TEXT);"
                   "CREATE TABLE responses(id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, response TEXT,"
                   " conversation_id TEXT, datetime_utc TEXT);"
                   "INSERT INTO conversations VALUES ('c', 'Birds', 'm');"
                   "INSERT INTO responses VALUES ('2', 'm', 'And two?', NULL, '4', 'c', '2026-01-02T00:00:01'),"
                   "('1', 'm', 'One bird?', 'Be brief.', '2', 'c', '2026-01-02T00:00:00')",
                   nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(connection);
  const ImportResult result = ImportChats(path, store_);
  EXPECT_EQ(result.num_chats, 1);
  EXPECT_EQ(Texts(1), (std::vector<std::string>{"system: Be brief.", "user: One bird?", "assistant: 2",
                                                "user: And two?", "assistant: 4"}));
  EXPECT_EQ(store_.Load(1)->title, "Birds");
  EXPECT_EQ(store_.Load(1)->created_ms, 1'767'312'000'000);
}

TEST_F(ChatImportTest, OtherFilesAreRejectedWithTheReason) {
  EXPECT_NE(ErrorOf("hello").find("neither JSON nor an SQLite database"), std::string::npos);
  EXPECT_NE(ErrorOf("{}").find("neither a list"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"messages": 5})").find("current_message: not an integer"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"current_message": 1, "messages": []})").find("no messages"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"current_message": 1, "messages": [{"id": 2, "parent": 3}]})").find("id or parent"),
            std::string::npos);
  EXPECT_NE(ErrorOf(std::string(100'000, '[')).find("neither JSON"), std::string::npos);
  EXPECT_THROW(ImportChats(temp_.path() + "/missing", store_), ConfigError);
  EXPECT_TRUE(store_.List(1).empty());
}

}  // namespace
}  // namespace vllm::app
