// ToolRequest: the tools that a request offers to the model, and what OpenAI's API lets it say about them. Plain value
// and functions without state; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "engine/tool_calls/syntax/tool_set.h"

namespace vllm::app {

enum class ToolChoice : uint8_t {
  kAuto,      // the model decides
  kNone,      // the model knows the tools, but its output is text
  kRequired,  // at least one call
  kNamed,     // a call of ToolRequest::named_tool
};

struct ToolRequest {
  std::shared_ptr<const ToolSet> tools;  // null: the request has none
  ToolChoice choice = ToolChoice::kAuto;
  std::string named_tool;
  bool parallel_calls = true;  // if false, only the first call counts

  // True if the output may have calls.
  bool may_call() const { return tools != nullptr && choice != ToolChoice::kNone; }
};

// Returns true if ReadToolRequest reads the field called `name`.
bool IsToolField(const std::string& name);

// Reads tools, tool_choice ("none", "auto", "required" or {"type":"function","function":{"name"}}) and
// parallel_tool_calls of `body`. `default_tools`, which may be null, are those of a body without tools. Throws
// RequestError. REQUIRES: `body` is an object.
ToolRequest ReadToolRequest(const nlohmann::ordered_json& body, std::shared_ptr<const ToolSet> default_tools = nullptr);

// Returns the tools of the template variables `variables_json` (PromptRenderer::variables), which are those of --tools.
// Returns null if there are none, or if they are not definitions that ParseToolDefinitions accepts.
std::shared_ptr<const ToolSet> ToolsOfVariables(const std::string& variables_json);

}  // namespace vllm::app
