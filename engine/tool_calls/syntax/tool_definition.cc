#include "engine/tool_calls/syntax/tool_definition.h"

#include <set>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/formats/tokenizer_error.h"

#include <nlohmann/json.hpp>

namespace vllm {
namespace {

using tokenizer::JsonScanner;
using tokenizer::RawMembers;

// Returns the value of an optional string, with `where` in errors.
std::string StringMember(const RawMembers& members, std::string_view key, const std::string& where) {
  return tokenizer::OptionalString(members, key, where);
}

ToolDefinition ParseDefinition(std::string_view json, const std::string& where) {
  RawMembers members = tokenizer::ReadMembers(json, where);
  if (const auto function = members.find("function"); function != members.end()) {
    const std::string type = StringMember(members, "type", where);
    if (!type.empty() && type != "function") {
      throw RequestError(where + ": type must be \"function\" (" + Escape(type) + ")");
    }
    members = tokenizer::ReadMembers(function->second, where + ".function");
  }
  ToolDefinition tool;
  tool.name = StringMember(members, "name", where);
  if (tool.name.empty()) throw RequestError(where + ": name is missing");
  if (!IsToolName(tool.name)) {
    throw RequestError(where + ": name must be 1 to " + std::to_string(kMaxToolNameBytes) +
                       " letters, digits and characters of \"_-./:\" (" + Escape(tool.name, 80) + ")");
  }
  const std::string named = where + " (" + tool.name + ")";
  try {
    tool.description = StringMember(members, "description", named);
    tool.strict = tokenizer::OptionalBool(members, "strict", named);
    // MCP servers call the schema inputSchema, and some programs input_schema.
    for (const char* key : {"parameters", "inputSchema", "input_schema"}) {
      const nlohmann::json parameters = tokenizer::ParseMember(members, key, named);
      if (parameters.is_null()) continue;
      if (!parameters.is_object()) throw RequestError(named + ": " + key + " must be a JSON object");
      tool.parameters = std::string(members.find(key)->second);
      break;
    }
  } catch (const tokenizer::TokenizerError& error) {
    throw RequestError(named + ": " + error.what());
  }
  return tool;
}

}  // namespace

bool IsToolName(std::string_view name) {
  if (name.empty() || name.size() > kMaxToolNameBytes) return false;
  for (const char c : name) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!is_letter && std::string_view("_-./:").find(c) == std::string_view::npos) return false;
  }
  return true;
}

std::vector<ToolDefinition> ParseToolDefinitions(std::string_view json) {
  if (json.size() > kMaxToolsBytes) {
    throw RequestError("tools: larger than " + std::to_string(kMaxToolsBytes) + " bytes");
  }
  std::vector<ToolDefinition> tools;
  std::set<std::string> names;
  std::string where = "tools";
  try {
    JsonScanner scanner(json, "tools");
    if (scanner.Peek() != '[') throw RequestError("tools: must be a JSON array");
    scanner.BeginArray();
    while (scanner.NextElement()) {
      where = "tools[" + std::to_string(tools.size()) + "]";
      if (tools.size() >= kMaxTools) throw RequestError("tools: more than " + std::to_string(kMaxTools) + " tools");
      if (scanner.Peek() != '{') throw RequestError(where + ": must be a JSON object");
      ToolDefinition tool = ParseDefinition(scanner.SkipValue(), where);
      if (!names.insert(tool.name).second) {
        throw RequestError(where + " (" + tool.name + "): another tool has this name");
      }
      tools.push_back(std::move(tool));
      where = "tools";
    }
    scanner.ExpectEnd();
  } catch (const tokenizer::TokenizerError& error) {
    throw RequestError(where + ": " + error.what());
  }
  return tools;
}

}  // namespace vllm
