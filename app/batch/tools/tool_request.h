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
// parallel_tool_calls of `body`. `defaults` has the tools of a body without tools, and the choice of a body without
// tool_choice that has tools. Throws RequestError. REQUIRES: `body` is an object.
ToolRequest ReadToolRequest(const nlohmann::ordered_json& body, const ToolRequest& defaults = {});

// Sets the choice that --tool-choice names: auto, none, required, or else a call of the tool `value`.
void SetToolChoice(const std::string& value, ToolRequest& request);
// Returns why the choice is not possible with the tools of the request, or "".
std::string ToolChoiceProblem(const ToolRequest& request);

// Returns the tools of the template variables `variables_json` (PromptRenderer::variables), which are those of --tools.
// Returns null if there are none, or if they are not definitions that ParseToolDefinitions accepts.
std::shared_ptr<const ToolSet> ToolsOfVariables(const std::string& variables_json);

}  // namespace vllm::app
