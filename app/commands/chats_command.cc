#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>

#include <nlohmann/json.hpp>

#include "app/chats/chat_export.h"
#include "app/chats/chat_import.h"
#include "app/chats/chat_store.h"
#include "app/cli/xdg.h"
#include "app/commands/commands.h"
#include "app/model/model_files.h"
#include "app/output/json_text.h"
#include "app/output/list_text.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxListed = 1000;

std::string Directory() {
  const std::string directory = DataHome();
  if (directory.empty()) throw ConfigError("chats: neither XDG_DATA_HOME nor HOME is an absolute path");
  return directory;
}

int64_t ChatNumber(const std::string& text) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 1) {
    throw ConfigError("chats: not the number of a conversation (" + text + ")",
                      "vllmcli chats list shows the numbers; vllmcli chats search TEXT finds messages");
  }
  return id;
}

StoredChat LoadChat(ChatStore& store, const std::string& number) {
  std::optional<StoredChat> chat = store.Load(ChatNumber(number));
  if (!chat) {
    throw RequestError("chats: there is no conversation " + number, "vllmcli chats list shows the stored ones");
  }
  return *std::move(chat);
}

int List(ChatStore& store, bool as_json) {
  const std::vector<ChatSummary> chats = store.List(kMaxListed);
  if (as_json) {
    Json list = Json::array();
    for (const ChatSummary& chat : chats) {
      list.push_back({{"id", chat.id},
                      {"title", chat.title},
                      {"created_ms", chat.created_ms},
                      {"updated_ms", chat.updated_ms},
                      {"num_messages", chat.num_messages},
                      {"model", chat.model}});
    }
    StandardOutput().WriteLine(SafeJson(DumpJson(list)));
    return 0;
  }
  for (const ChatSummary& chat : chats) {
    std::string id = std::to_string(chat.id);
    id.insert(0, id.size() < 5 ? 5 - id.size() : 0, ' ');
    StandardOutput().WriteLine(SafeLine(id + "  " + LocalTimeText(chat.updated_ms) + "  " + FirstLine(chat.title, 60)));
  }
  return 0;
}

int Search(ChatStore& store, const std::string& query, bool as_json) {
  const std::vector<SearchHit> hits = store.Search(query, 100);
  if (as_json) {
    Json list = Json::array();
    for (const SearchHit& hit : hits) {
      list.push_back({{"chat", hit.chat},
                      {"message", hit.message},
                      {"title", hit.title},
                      {"role", RoleName(hit.role)},
                      {"snippet", hit.snippet}});
    }
    StandardOutput().WriteLine(SafeJson(DumpJson(list)));
  } else {
    for (const SearchHit& hit : hits) {
      StandardOutput().WriteLine(
          SafeLine(std::to_string(hit.chat) + "  " + FirstLine(hit.title, 40) + ": " + OneLine(hit.snippet)));
    }
  }
  return hits.empty() ? 1 : 0;
}

// Deletes the conversations in this order. Deletes none if one of them does not exist, and stops at one that is open in
// a chat.
int Remove(const std::vector<std::string>& numbers, bool secure) {
  ChatStore store(Directory(), ChatStore::Access::kWrite);
  for (const std::string& number : numbers) LoadChat(store, number);
  for (const std::string& number : numbers) {
    const int64_t chat = ChatNumber(number);
    if (!store.LockChat(chat)) throw RequestError("chats: conversation " + number + " is open in a chat");
    store.DeleteChat(chat);
  }
  if (!store.EraseDeleted()) {
    const std::string why =
        "other programs use the database, so the deleted text remains in " + store.path() + "-wal until they end";
    if (secure) throw ResourceError("chats: " + why);
    PrintWarning(why);
  }
  return 0;
}

int Import(const std::string& path) {
  // A wrong name must not create the database.
  if (path != "-" && access(path.c_str(), R_OK) != 0) {
    throw ConfigError("chats import " + path + ": " + std::strerror(errno));
  }
  ChatStore store(Directory(), ChatStore::Access::kWrite);
  const ImportResult result = path == "-"
                                  ? ImportChatsText(ReadFileOrStdin("-", kMaxImportBytes), "standard input", store)
                                  : ImportChats(path, store);
  for (const std::string& error : result.errors) PrintWarning(error);
  PrintStatus(CountedText(result.num_chats, "conversation") + " with " + CountedText(result.num_messages, "message") +
              " imported");
  return result.errors.empty() ? 0 : 1;
}

}  // namespace

int ChatsCommand(const Settings& settings) {
  const std::vector<std::string>& words = settings.arguments;
  const std::string action = words.empty() ? "list" : words[0];
  const std::vector<std::string> rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  const bool as_json = settings.Switch("json");
  const auto expect = [&](bool is_right, const char* usage) {
    if (!is_right) throw ConfigError(std::string("chats: usage: vllmcli chats ") + usage);
  };
  if (action == "rm") {
    expect(!rest.empty(), "rm NUMBER...");
    return Remove(rest, settings.Switch("secure"));
  }
  if (action == "import") {
    expect(rest.size() == 1, "import FILE");
    return Import(rest[0]);
  }
  if (action != "list" && action != "search" && action != "show" && action != "export") {
    throw ConfigError("chats: unknown action " + action + " (known: list, search, show, export, import, rm)",
                      "vllmcli chats --help explains them");
  }
  const std::string directory = Directory();
  if (access((directory + "/chats.db").c_str(), F_OK) != 0 && errno == ENOENT) {
    if (action != "list") {
      throw RequestError("chats: there are no stored conversations (" + directory + "/chats.db does not exist)",
                         "vllmcli chat stores conversations, unless --no-save is set");
    }
    if (as_json) StandardOutput().WriteLine(SafeText("[]"));
    return 0;
  }
  ChatStore store(directory, ChatStore::Access::kRead);
  if (action == "list") {
    expect(rest.empty(), "list");
    return List(store, as_json);
  }
  if (action == "search") {
    expect(!rest.empty(), "search TEXT...");
    std::string query;
    for (const std::string& word : rest) query += (query.empty() ? "" : " ") + word;
    return Search(store, query, as_json);
  }
  if (action == "show") {
    expect(rest.size() == 1, "show NUMBER");
    const StoredChat chat = LoadChat(store, rest[0]);
    if (as_json) {
      StandardOutput().WriteLine(SafeJson(DumpJson(JsonOf(chat))));
    } else {
      StandardOutput().Write(SafeText(MarkdownOf(chat)));
    }
    return 0;
  }
  expect(rest.size() == 2, "export NUMBER FILE");
  WriteNewFile(rest[1], ExportText(LoadChat(store, rest[0]), rest[1]));
  return 0;
}

}  // namespace vllm::app
