#include "app/batch/tools/tool_request.h"

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

void ReadChoice(const Json& value, ToolRequest& request) {
  if (value == "auto") return;
  if (value == "none") {
    request.choice = ToolChoice::kNone;
    return;
  }
  if (value == "required") {
    request.choice = ToolChoice::kRequired;
    return;
  }
  if (value.is_object() && value.value("type", Json()) == "function") {
    const Json function = value.value("function", Json());
    const Json name = function.is_object() ? function.value("name", Json()) : Json();
    if (name.is_string()) {
      request.choice = ToolChoice::kNamed;
      request.named_tool = name.get<std::string>();
      return;
    }
  }
  throw RequestError(
      "tool_choice: must be none, auto, required or {\"type\":\"function\",\"function\":{\"name\":NAME}}");
}

}  // namespace

bool IsToolField(const std::string& name) {
  return name == "tools" || name == "tool_choice" || name == "parallel_tool_calls";
}

ToolRequest ReadToolRequest(const Json& body, std::shared_ptr<const ToolSet> default_tools) {
  ToolRequest request;
  const auto field = [&](const char* name) {
    const auto found = body.find(name);
    return found == body.end() ? Json() : *found;
  };
  if (const Json tools = field("tools"); tools.is_null()) {
    request.tools = std::move(default_tools);
  } else if (tools != Json::array()) {
    request.tools = std::make_shared<const ToolSet>(ParseToolDefinitions(DumpJson(tools)));
  }
  if (const Json choice = field("tool_choice"); !choice.is_null()) ReadChoice(choice, request);
  if (const Json parallel = field("parallel_tool_calls"); !parallel.is_null()) {
    if (!parallel.is_boolean()) throw RequestError("parallel_tool_calls: must be true or false");
    request.parallel_calls = parallel.get<bool>();
  }
  const bool needs_tools = request.choice == ToolChoice::kRequired || request.choice == ToolChoice::kNamed;
  if (needs_tools && request.tools == nullptr) throw RequestError("tool_choice: the request has no tools");
  if (request.choice == ToolChoice::kNamed && request.tools->Find(request.named_tool) == nullptr) {
    throw RequestError("tool_choice: no tool has this name (" + Escape(request.named_tool) + ")");
  }
  return request;
}

std::shared_ptr<const ToolSet> ToolsOfVariables(const std::string& variables_json) {
  Json variables;
  if (variables_json.empty() || !ParseJsonText(variables_json, variables).empty() || !variables.contains("tools")) {
    return nullptr;
  }
  try {
    std::vector<ToolDefinition> tools = ParseToolDefinitions(DumpJson(variables["tools"]));
    return tools.empty() ? nullptr : std::make_shared<const ToolSet>(std::move(tools));
  } catch (const RequestError&) {
    return nullptr;  // only the template reads them
  }
}

}  // namespace vllm::app
