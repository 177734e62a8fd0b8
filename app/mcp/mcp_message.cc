#include "app/mcp/mcp_message.h"

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;
using tokenizer::RawMembers;

constexpr size_t kMaxIdBytes = 200;
constexpr size_t kMaxMethodBytes = 200;
constexpr char kName[] = "message";

McpMessage Broken(std::string why) {
  McpMessage message;
  message.kind = McpMessage::Kind::kBroken;
  message.text = std::move(why);
  return message;
}

std::string RawText(const RawMembers& members, std::string_view key) {
  const auto found = members.find(key);
  return found == members.end() ? "" : std::string(found->second);
}

// Returns 0 if the id is no positive integer: all of ours are.
int64_t NumberOfId(std::string_view json) {
  constexpr size_t kMaxDigits = 18;
  int64_t id = 0;
  if (json.empty() || json.size() > kMaxDigits) return 0;
  for (const char c : json) {
    if (c < '0' || c > '9') return 0;
    id = 10 * id + (c - '0');
  }
  return id;
}

McpMessage ErrorMessage(const RawMembers& members) {
  McpMessage message;
  message.kind = McpMessage::Kind::kError;
  message.id = NumberOfId(RawText(members, "id"));
  const RawMembers error = tokenizer::ReadMembers(members.at("error"), "error");
  const Json code = Json::parse(RawText(error, "code"), nullptr, /*allow_exceptions=*/false);
  if (!code.is_number_integer()) return Broken("error: code must be an integer");
  message.error_code = code.get<int64_t>();
  message.text = tokenizer::OptionalString(error, "message", "error");
  message.data = RawText(error, "data");
  return message;
}

McpMessage MessageOf(const RawMembers& members) {
  McpMessage message;
  const std::string id = RawText(members, "id");
  const bool has_id = !id.empty() && id != "null";
  if (members.contains("method")) {
    message.method = tokenizer::OptionalString(members, "method", kName);
    message.text = RawText(members, "params");
    if (message.method.size() > kMaxMethodBytes) return Broken("method: too long");
    if (id.size() > kMaxIdBytes) return Broken("id: too long");
    message.kind = has_id ? McpMessage::Kind::kRequest : McpMessage::Kind::kNotification;
    message.id_json = id;
    return message;
  }
  if (members.contains("error")) return ErrorMessage(members);
  if (!members.contains("result")) return Broken("has neither method, result nor error");
  message.kind = McpMessage::Kind::kResponse;
  message.id = NumberOfId(id);
  message.text = RawText(members, "result");
  return message;
}

std::string Line(std::string_view id_json, std::string_view key, std::string_view value_json, std::string_view params) {
  std::string line = R"({"jsonrpc":"2.0")";
  if (!id_json.empty()) line.append(",\"id\":").append(id_json);
  line.append(",\"").append(key).append("\":").append(value_json);
  if (!params.empty()) line.append(",\"params\":").append(params);
  return line + "}\n";
}

}  // namespace

McpMessage ParseMcpMessage(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  const std::string_view marker = "\"jsonrpc\"";
  if (begin == std::string_view::npos || line[begin] != '{' || line.find(marker) == std::string_view::npos) return {};
  std::string repaired;
  if (!tokenizer::IsValidUtf8(line)) {
    repaired = tokenizer::ReplaceInvalidUtf8(line);
    line = repaired;
  }
  // The scanner below accepts some text that is not valid JSON.
  if (!Json::accept(line)) return Broken("not valid JSON");
  try {
    const RawMembers members = tokenizer::ReadMembers(line, kName);
    if (RawText(members, "jsonrpc") != "\"2.0\"") return Broken("jsonrpc must be \"2.0\"");
    return MessageOf(members);
  } catch (const tokenizer::TokenizerError& error) {
    return Broken(error.what());
  }
}

std::string McpRequestLine(int64_t id, std::string_view method, std::string_view params_json) {
  return Line(std::to_string(id), "method", DumpJson(Json(method)), params_json);
}

std::string McpNotificationLine(std::string_view method, std::string_view params_json) {
  return Line("", "method", DumpJson(Json(method)), params_json);
}

std::string McpResultLine(std::string_view id_json, std::string_view result_json) {
  return Line(id_json, "result", result_json, "");
}

std::string McpErrorLine(std::string_view id_json, int64_t code, std::string_view message) {
  return Line(id_json, "error", DumpJson(Json({{"code", code}, {"message", message}})), "");
}

}  // namespace vllm::app
