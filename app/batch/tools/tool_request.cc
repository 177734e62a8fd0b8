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
  if (value == "auto" || value == "none" || value == "required") return SetToolChoice(value, request);
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

void SetToolChoice(const std::string& value, ToolRequest& request) {
  request.named_tool.clear();
  if (value == "auto") {
    request.choice = ToolChoice::kAuto;
  } else if (value == "none") {
    request.choice = ToolChoice::kNone;
  } else if (value == "required") {
    request.choice = ToolChoice::kRequired;
  } else {
    request.choice = ToolChoice::kNamed;
    request.named_tool = value;
  }
}

std::string ToolChoiceProblem(const ToolRequest& request) {
  if (request.choice != ToolChoice::kRequired && request.choice != ToolChoice::kNamed) return "";
  if (request.tools == nullptr || request.tools->empty()) return "the request has no tools";
  const bool is_missing = request.choice == ToolChoice::kNamed && request.tools->Find(request.named_tool) == nullptr;
  return is_missing ? "no tool has this name (" + Escape(request.named_tool) + ")" : "";
}

ToolRequest ReadToolRequest(const Json& body, const ToolRequest& defaults) {
  ToolRequest request;
  const auto field = [&](const char* name) {
    const auto found = body.find(name);
    return found == body.end() ? Json() : *found;
  };
  if (const Json tools = field("tools"); tools.is_null()) {
    request.tools = defaults.tools;
  } else if (tools != Json::array()) {
    request.tools = std::make_shared<const ToolSet>(ParseToolDefinitions(DumpJson(tools)));
  }
  if (const Json choice = field("tool_choice"); !choice.is_null()) {
    ReadChoice(choice, request);
  } else if (request.tools != nullptr) {
    request.choice = defaults.choice;
    request.named_tool = defaults.named_tool;
  }
  if (const Json parallel = field("parallel_tool_calls"); !parallel.is_null()) {
    if (!parallel.is_boolean()) throw RequestError("parallel_tool_calls: must be true or false");
    request.parallel_calls = parallel.get<bool>();
  }
  if (const std::string problem = ToolChoiceProblem(request); !problem.empty()) {
    throw RequestError("tool_choice: " + problem);
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
