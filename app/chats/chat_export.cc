#include "app/chats/chat_export.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

std::string_view HeadingOf(ChatRole role) {
  switch (role) {
    case ChatRole::kSystem:
      return "System";
    case ChatRole::kUser:
      return "User";
    case ChatRole::kAssistant:
      return "Assistant";
    case ChatRole::kTool:
      return "Tool";
  }
  return "";
}

std::string TitleOf(const StoredChat& chat) {
  return chat.title.empty() ? "Chat " + std::to_string(chat.id) : chat.title;
}

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string HtmlText(const std::string& text) {
  return "<div class=\"text\">" + EscapeHtml(tokenizer::ReplaceInvalidUtf8(text)) + "</div>\n";
}

}  // namespace

std::vector<const StoredMessage*> CurrentPath(const StoredChat& chat) {
  std::map<int64_t, const StoredMessage*> by_id;
  for (const StoredMessage& message : chat.messages) by_id[message.id] = &message;
  std::vector<const StoredMessage*> path;
  int64_t id = chat.current_message;
  for (auto found = by_id.find(id); found != by_id.end(); found = by_id.find(id)) {
    path.push_back(found->second);
    // Parents have smaller ids, so a crafted cycle ends here.
    if (found->second->parent >= id) break;
    id = found->second->parent;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::string MarkdownOf(const StoredChat& chat) {
  std::string text = "# " + TitleOf(chat) + "\n";
  for (const StoredMessage* message : CurrentPath(chat)) {
    text += "\n## ";
    text += HeadingOf(message->role);
    text += "\n\n";
    if (!message->thinking.empty()) {
      // The empty line after the summary ends the HTML, so that the thought is rendered as Markdown.
      text += "<details>\n<summary>Thought</summary>\n\n" + message->thinking + "\n\n</details>\n\n";
    }
    text += message->text;
    if (!text.ends_with('\n')) text += '\n';
  }
  return text;
}

std::string HtmlOf(const StoredChat& chat) {
  const std::string title = EscapeHtml(tokenizer::ReplaceInvalidUtf8(TitleOf(chat)));
  std::string text =
      "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<title>" + title +
      "</title>\n<style>\nbody { max-width: 50em; margin: auto; padding: 1em; font-family: sans-serif; }\n"
      ".text { white-space: pre-wrap; overflow-wrap: anywhere; }\n</style>\n</head>\n<body>\n<h1>" +
      title + "</h1>\n";
  for (const StoredMessage* message : CurrentPath(chat)) {
    text += "<h2>";
    text += HeadingOf(message->role);
    text += "</h2>\n";
    if (!message->thinking.empty()) {
      text += "<details>\n<summary>Thought</summary>\n" + HtmlText(message->thinking) + "</details>\n";
    }
    text += HtmlText(message->text);
  }
  return text + "</body>\n</html>\n";
}

nlohmann::ordered_json JsonOf(const StoredChat& chat) {
  nlohmann::ordered_json json;
  json["id"] = chat.id;
  json["title"] = chat.title;
  json["created_ms"] = chat.created_ms;
  json["updated_ms"] = chat.updated_ms;
  json["current_message"] = chat.current_message;
  json["messages"] = nlohmann::ordered_json::array();
  for (const StoredMessage& message : chat.messages) {
    std::array<char, 17> digest{};
    std::snprintf(digest.data(), digest.size(), "%016llx", static_cast<unsigned long long>(message.model_digest));
    json["messages"].push_back({{"id", message.id},
                                {"parent", message.parent},
                                {"role", RoleName(message.role)},
                                {"text", message.text},
                                {"ids_begin", message.ids_begin},
                                {"token_ids", message.token_ids},
                                {"context_first", message.context_first},
                                {"model", message.model},
                                {"model_digest", digest.data()},
                                {"sampling_params", message.sampling_params},
                                {"finish_reason", message.finish_reason},
                                {"created_ms", message.created_ms},
                                {"finished_ms", message.finished_ms},
                                {"thinking", message.thinking},
                                {"num_thinking_ids", message.num_thinking_ids},
                                {"thinking_ms", message.thinking_ms},
                                {"template_variables", message.template_variables},
                                {"tool_calls", message.tool_calls},
                                {"tool_call_id", message.tool_call_id},
                                {"tool_name", message.tool_name}});
  }
  return json;
}

std::string ExportText(const StoredChat& chat, const std::string& path) {
  if (path.ends_with(".md")) return MarkdownOf(chat);
  if (path.ends_with(".html")) return HtmlOf(chat);
  if (path.ends_with(".json")) {
    return JsonOf(chat).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  throw ConfigError("cannot export to " + Escape(path) + ": the name must end with .md, .html or .json");
}

}  // namespace vllm::app
