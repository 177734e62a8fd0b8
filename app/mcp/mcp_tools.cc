#include "app/mcp/mcp_tools.h"

#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;
using tokenizer::RawMembers;

constexpr int kMaxPages = 100;
constexpr size_t kMaxCursorBytes = 4096;
constexpr size_t kMaxToolBytes = size_t{64} << 10;
constexpr size_t kMaxDescriptionBytes = 8192;
constexpr char kCall[] = "tools/call";

// Returns one tool of a page. Throws TokenizerError or RequestError.
ToolDefinition ToolOf(std::string_view json) {
  const RawMembers members = tokenizer::ReadMembers(json, "tool");
  Json tool = {{"name", tokenizer::OptionalString(members, "name", "tool")}};
  const std::string description = tokenizer::OptionalString(members, "description", "tool");
  tool["description"] =
      description.size() <= kMaxDescriptionBytes ? description : Escape(description, kMaxDescriptionBytes);
  const auto schema = members.find("inputSchema");
  if (schema != members.end()) {
    Json parameters;
    const std::string error = ParseJsonText(schema->second, parameters);
    if (!error.empty()) throw RequestError("inputSchema: " + error);
    tool["parameters"] = std::move(parameters);
  }
  return ParseToolDefinitions(DumpJson(Json::array({std::move(tool)}))).at(0);
}

// Appends the text of one item of "content".
void AppendContent(std::string_view json, std::string& text) {
  const RawMembers item = tokenizer::ReadMembers(json, kCall);
  const std::string type = tokenizer::OptionalString(item, "type", kCall);
  std::string part;
  if (type == "text") {
    part = tokenizer::OptionalString(item, "text", kCall);
  } else if (type == "resource" && item.contains("resource")) {
    const RawMembers resource = tokenizer::ReadMembers(item.at("resource"), kCall);
    part = resource.contains("text") ? tokenizer::OptionalString(resource, "text", kCall)
                                     : "[resource " + tokenizer::OptionalString(resource, "uri", kCall) + "]";
  } else if (type == "resource_link") {
    part = "[link to " + tokenizer::OptionalString(item, "uri", kCall) + "]";
  } else {
    part = "[" + Escape(type, 40) + " " + Escape(tokenizer::OptionalString(item, "mimeType", kCall), 80) +
           ", which cannot be shown to the model]";
  }
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += part;
}

}  // namespace

std::string ReadMcpToolPage(const std::string& result_json, std::vector<ToolDefinition>& definitions,
                            std::vector<std::string>& warnings) {
  try {
    const RawMembers result = tokenizer::ReadMembers(result_json, "tools/list");
    const auto tools = result.find("tools");
    if (tools == result.end()) throw ToolError("tools/list: the answer has no tools");
    tokenizer::JsonScanner scanner(tools->second, "tools/list");
    scanner.BeginArray();
    while (scanner.NextElement()) {
      const std::string_view tool = scanner.SkipValue();
      const std::string where = "tool " + std::to_string(definitions.size() + warnings.size() + 1) + ": ";
      if (definitions.size() + warnings.size() >= kMaxTools) {
        throw ToolError("tools/list: too many tools (limit " + std::to_string(kMaxTools) + ")");
      }
      if (tool.size() > kMaxToolBytes) {
        warnings.push_back(where + "its definition is too long (limit 64 KiB)");
        continue;
      }
      try {
        definitions.push_back(ToolOf(tool));
      } catch (const RequestError& error) {
        warnings.push_back(where + error.what());
      } catch (const tokenizer::TokenizerError& error) {
        warnings.push_back(where + error.what());
      }
    }
    return tokenizer::OptionalString(result, "nextCursor", "tools/list");
  } catch (const tokenizer::TokenizerError& error) {
    throw ToolError(error.what());
  }
}

ToolResult ReadMcpCallResult(const std::string& result_json) {
  ToolResult result;
  try {
    const RawMembers members = tokenizer::ReadMembers(result_json, kCall);
    const std::string type = tokenizer::OptionalString(members, "resultType", kCall);
    if (!type.empty() && type != "complete") {
      return FailedResult("the server asks for more input (" + Escape(type, 40) + "), which is not supported");
    }
    std::string text;
    if (const auto content = members.find("content"); content != members.end()) {
      tokenizer::JsonScanner scanner(content->second, kCall);
      scanner.BeginArray();
      while (scanner.NextElement()) AppendContent(scanner.SkipValue(), text);
    }
    const auto structured = members.find("structuredContent");
    if (text.empty() && structured != members.end()) text = structured->second;
    result.failed = tokenizer::OptionalBool(members, "isError", kCall);
    result.text = ResultText(result.failed ? "error: " + text : text);
    return result;
  } catch (const tokenizer::TokenizerError& error) {
    return FailedResult(std::string("the server's answer is invalid: ") + error.what());
  }
}

std::string McpTools::List(std::span<const PollHook> hooks, std::vector<ToolDefinition>& definitions) {
  std::string cursor;
  for (int page = 0; page < kMaxPages; ++page) {
    const std::string params = cursor.empty() ? "{}" : DumpJson({{"cursor", cursor}});
    const McpReply reply = client_.Request("tools/list", params, hooks);
    if (!reply.ok()) return reply.text;
    try {
      cursor = ReadMcpToolPage(reply.text, definitions, warnings_);
    } catch (const ToolError& error) {
      return "MCP server " + prefix() + ": " + error.what();
    }
    if (cursor.empty()) {
      std::set<std::string> names;
      std::erase_if(definitions, [&](const ToolDefinition& tool) { return !names.insert(tool.name).second; });
      return "";
    }
    if (cursor.size() > kMaxCursorBytes) break;
  }
  return "MCP server " + prefix() + ": tools/list has too many pages (limit " + std::to_string(kMaxPages) + ")";
}

std::string McpTools::Start(std::span<const PollHook> hooks) {
  definitions_.clear();
  const McpReply reply = client_.Connect(hooks);
  if (!reply.ok()) return reply.text;
  std::vector<ToolDefinition> definitions;
  const std::string error = List(hooks, definitions);
  if (!error.empty()) {
    client_.Close();
    return error;
  }
  definitions_ = std::move(definitions);
  return "";
}

std::string McpTools::OriginOf(size_t /*index*/) const {
  return "MCP server " + prefix() + (client_.is_open() ? "" : ", which has ended");
}

ToolResult McpTools::Run(size_t index, const std::string& arguments, std::span<const PollHook> hooks) {
  const std::string params =
      R"({"name":)" + DumpJson(Json(definitions_.at(index).name)) + R"(,"arguments":)" + arguments + "}";
  const McpReply reply = client_.Request(kCall, params, hooks);
  if (reply.ok()) return ReadMcpCallResult(reply.text);
  ToolResult result = FailedResult(reply.text);
  result.was_interrupted = reply.status == McpReply::Status::kInterrupted;
  return result;
}

bool McpTools::Refresh(std::span<const PollHook> hooks) {
  client_.ReadPending();
  if (!client_.is_open() || !client_.TakeToolsChanged()) return false;
  std::vector<ToolDefinition> definitions;
  const std::string error = List(hooks, definitions);
  if (!error.empty()) {
    warnings_.push_back(error);
    return false;
  }
  if (definitions == definitions_) return false;
  definitions_ = std::move(definitions);
  return true;
}

}  // namespace vllm::app
