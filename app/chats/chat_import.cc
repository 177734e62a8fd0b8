#include "app/chats/chat_import.h"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSqliteMagic = "SQLite format 3";

// A conversation in the file that cannot be imported.
class ImportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns the member of an object, or null.
const Json& Member(const Json& object, const char* name) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

std::string TextOf(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

// Converts seconds since 1970, which may have a fraction. Returns 0 if there are none.
int64_t MsOf(const Json& seconds) {
  if (!seconds.is_number()) return 0;
  const double ms = seconds.get<double>() * 1000;
  return std::isfinite(ms) && ms > 0 && ms < 1e15 ? static_cast<int64_t>(ms) : 0;
}

int64_t IntOf(const Json& value, const char* name) {
  if (!value.is_number_integer()) throw ImportError(std::string(name) + ": not an integer");
  return value.get<int64_t>();
}

bool SetRole(const std::string& name, ChatRole& role) {
  for (const ChatRole known : {ChatRole::kSystem, ChatRole::kUser, ChatRole::kAssistant}) {
    if (name != RoleName(known)) continue;
    role = known;
    return true;
  }
  return false;
}

// The text parts of one message of ChatGPT. Parts such as images are objects and are left out.
std::string ChatGptText(const Json& message) {
  std::string text;
  const Json& parts = Member(Member(message, "content"), "parts");
  if (!parts.is_array()) return text;
  for (const Json& part : parts) {
    if (!part.is_string()) continue;
    if (!text.empty()) text += '\n';
    text += part.get<std::string>();
  }
  return text;
}

// Walks the tree from its roots, without recursion. Nodes without text, such as the results of tools, are left out:
// their children continue the message before them.
StoredChat ChatGptChat(const Json& conversation) {
  const Json& mapping = Member(conversation, "mapping");
  if (!mapping.is_object()) throw ImportError("mapping: not an object");
  StoredChat chat;
  chat.title = TextOf(Member(conversation, "title"));
  chat.created_ms = MsOf(Member(conversation, "create_time"));
  chat.updated_ms = MsOf(Member(conversation, "update_time"));
  std::map<std::string, int64_t> last_message;        // node -> the message at or before it
  std::vector<std::pair<std::string, int64_t>> open;  // a node and the message before it
  for (const auto& [name, node] : mapping.items()) {
    const Json& parent = Member(node, "parent");
    if (!parent.is_string() || !mapping.contains(parent.get<std::string>())) open.emplace_back(name, 0);
  }
  while (!open.empty()) {
    const auto [name, parent] = std::move(open.back());
    open.pop_back();
    if (!last_message.emplace(name, parent).second) continue;  // a cycle, or two parents
    const Json& node = mapping.at(name);
    const Json& message = Member(node, "message");
    StoredMessage stored;
    stored.parent = parent;
    stored.text = ChatGptText(message);
    if (!stored.text.empty() && SetRole(TextOf(Member(Member(message, "author"), "role")), stored.role)) {
      stored.id = static_cast<int64_t>(chat.messages.size()) + 1;
      stored.model = TextOf(Member(Member(message, "metadata"), "model_slug"));
      stored.created_ms = MsOf(Member(message, "create_time"));
      stored.finished_ms = stored.created_ms;
      if (stored.role == ChatRole::kAssistant) stored.finish_reason = "stop";
      last_message[name] = stored.id;
      chat.messages.push_back(std::move(stored));
    }
    const Json& children = Member(node, "children");
    if (!children.is_array()) continue;
    // The first child is taken first, so that older branches have smaller ids.
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      if (child->is_string() && mapping.contains(child->get<std::string>())) {
        open.emplace_back(child->get<std::string>(), last_message[name]);
      }
    }
  }
  if (chat.messages.empty()) throw ImportError("no messages with text");
  const auto current = last_message.find(TextOf(Member(conversation, "current_node")));
  chat.current_message = current == last_message.end() ? chat.messages.back().id : current->second;
  return chat;
}

// The format of `chats export FILE.json`.
StoredChat ExportedChat(const Json& json) {
  StoredChat chat;
  chat.title = TextOf(Member(json, "title"));
  chat.created_ms = Member(json, "created_ms").is_number_integer() ? json["created_ms"].get<int64_t>() : 0;
  chat.updated_ms = Member(json, "updated_ms").is_number_integer() ? json["updated_ms"].get<int64_t>() : 0;
  chat.current_message = IntOf(Member(json, "current_message"), "current_message");
  std::set<int64_t> ids;
  for (const Json& message : Member(json, "messages")) {
    StoredMessage stored;
    stored.id = IntOf(Member(message, "id"), "id");
    stored.parent = IntOf(Member(message, "parent"), "parent");
    if (stored.id < 1 || (stored.parent != 0 && !ids.contains(stored.parent)) || !ids.insert(stored.id).second) {
      throw ImportError("id or parent: not that of a message");
    }
    // Files of earlier versions have no fields about tools.
    stored.tool_calls = TextOf(Member(message, "tool_calls"));
    stored.tool_call_id = TextOf(Member(message, "tool_call_id"));
    stored.tool_name = TextOf(Member(message, "tool_name"));
    const std::string role = TextOf(Member(message, "role"));
    if (role == RoleName(ChatRole::kTool) && !stored.tool_call_id.empty()) {
      stored.role = ChatRole::kTool;
    } else if (!SetRole(role, stored.role)) {
      throw ImportError("role: unknown");
    }
    stored.text = TextOf(Member(message, "text"));
    stored.ids_begin = IntOf(Member(message, "ids_begin"), "ids_begin");
    stored.context_first = IntOf(Member(message, "context_first"), "context_first");
    for (const Json& id : Member(message, "token_ids")) {
      const int64_t value = IntOf(id, "token_ids");
      if (value < 0 || value > INT32_MAX) throw ImportError("token_ids: outside 0 to 2^31 - 1");
      stored.token_ids.push_back(static_cast<int32_t>(value));
    }
    stored.model = TextOf(Member(message, "model"));
    const std::string digest = TextOf(Member(message, "model_digest"));
    std::from_chars(digest.data(), digest.data() + digest.size(), stored.model_digest, 16);
    stored.sampling_params = TextOf(Member(message, "sampling_params"));
    stored.finish_reason = TextOf(Member(message, "finish_reason"));
    stored.created_ms = IntOf(Member(message, "created_ms"), "created_ms");
    stored.finished_ms = IntOf(Member(message, "finished_ms"), "finished_ms");
    // Files of earlier versions do not have these.
    stored.thinking = TextOf(Member(message, "thinking"));
    stored.template_variables = TextOf(Member(message, "template_variables"));
    if (message.contains("num_thinking_ids")) {
      stored.num_thinking_ids = IntOf(message["num_thinking_ids"], "num_thinking_ids");
      stored.thinking_ms = IntOf(Member(message, "thinking_ms"), "thinking_ms");
    }
    chat.messages.push_back(std::move(stored));
  }
  if (chat.messages.empty()) throw ImportError("no messages");
  return chat;
}

// A conversation of llm's logs.db: rows of responses in the order of their times.
std::vector<StoredChat> LlmChats(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  Database database(real == nullptr ? path : real.get(), Database::Mode::kRead, /*busy_timeout_ms=*/5000);
  if (database.QueryInt("SELECT count(*) FROM sqlite_schema WHERE name IN ('conversations', 'responses')") != 2) {
    throw ConfigError("import " + Escape(path) + ": a database without the tables conversations and responses of llm");
  }
  std::map<std::string, StoredChat> by_id;
  std::vector<std::string> order;
  Statement rows(database,
                 "SELECT responses.conversation_id, conversations.name, responses.model, responses.system, "
                 "responses.prompt, responses.response, "
                 "1000 * coalesce(CAST(strftime('%s', responses.datetime_utc) AS INTEGER), 0) "
                 "FROM responses JOIN conversations ON conversations.id = responses.conversation_id "
                 "ORDER BY responses.datetime_utc, responses.id");
  while (rows.Step()) {
    const std::string id(rows.Text(0));
    const auto [entry, is_new] = by_id.try_emplace(id);
    if (is_new) order.push_back(id);
    StoredChat& chat = entry->second;
    const int64_t ms = rows.Int(6);
    const auto add = [&](ChatRole role, std::string_view text) {
      StoredMessage message;
      message.id = static_cast<int64_t>(chat.messages.size()) + 1;
      message.parent = message.id - 1;
      message.role = role;
      message.text = text;
      message.model = rows.Text(2);
      message.created_ms = ms;
      message.finished_ms = ms;
      if (role == ChatRole::kAssistant) message.finish_reason = "stop";
      chat.current_message = message.id;
      chat.messages.push_back(std::move(message));
    };
    if (is_new) {
      chat.title = rows.Text(1);
      chat.created_ms = ms;
      if (!rows.Text(3).empty()) add(ChatRole::kSystem, rows.Text(3));
    }
    chat.updated_ms = ms;
    add(ChatRole::kUser, rows.Text(4));
    add(ChatRole::kAssistant, rows.Text(5));
  }
  std::vector<StoredChat> chats;
  for (const std::string& id : order) chats.push_back(std::move(by_id.at(id)));
  return chats;
}

void Import(StoredChat chat, ChatStore& store, ImportResult& result) {
  const auto num_messages = static_cast<int64_t>(chat.messages.size());
  store.AddChat(chat);
  ++result.num_chats;
  result.num_messages += num_messages;
}

}  // namespace

ImportResult ImportChats(const std::string& path, ChatStore& store) {
  const auto check = [&](const tokenizer::RegularFile& file) {
    if (!file.ok()) throw ConfigError("import " + Escape(path) + ": " + file.error);
  };
  const tokenizer::RegularFile file = tokenizer::OpenRegularFile(path);
  check(file);
  std::string text(kSqliteMagic.size(), '\0');
  if (pread(file.fd.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) && text == kSqliteMagic) {
    ImportResult result;
    for (StoredChat& chat : LlmChats(path)) Import(std::move(chat), store, result);
    return result;
  }
  check(tokenizer::ReadRegularFile(path, kMaxImportBytes, text));
  return ImportChatsText(text, path, store);
}

ImportResult ImportChatsText(const std::string& text, const std::string& name, ChatStore& store) {
  const auto fail = [&](const std::string& why) { throw ConfigError("import " + Escape(name) + ": " + why); };
  if (text.starts_with(kSqliteMagic)) fail("is an SQLite database, which must be a file");
  ImportResult result;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) fail("neither JSON nor an SQLite database");
  if (json.is_object() && json.contains("messages")) {
    try {
      Import(ExportedChat(json), store, result);
    } catch (const ImportError& error) {
      fail(error.what());
    }
    return result;
  }
  if (!json.is_array()) fail("neither a list of ChatGPT's conversations nor an exported conversation");
  for (size_t i = 0; i < json.size(); ++i) {
    try {
      Import(ChatGptChat(json[i]), store, result);
    } catch (const ImportError& error) {
      result.errors.push_back("conversation " + std::to_string(i + 1) + ": " + error.what());
    }
  }
  return result;
}

}  // namespace vllm::app
