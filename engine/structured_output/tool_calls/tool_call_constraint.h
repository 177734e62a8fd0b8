// ToolCallConstraint: which tool calls an output may have. Travels with a request as the text of its
// StructuredOutputsParams. A plain value; any thread.
//
// The text is a JSON object, in which `tools` has the inner objects of OpenAI's definitions without descriptions:
//   {"format": "hermes", "must_call": false, "parallel_tool_calls": true, "tools": [{"name": "f", "parameters":
//   {...}}]}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/request/structured_outputs_params.h"
#include "engine/tool_calls/syntax/tool_call_format.h"
#include "engine/tool_calls/syntax/tool_definition.h"

namespace vllm {

struct ToolCallConstraint {
  const ToolCallFormat* format = nullptr;
  // If true, the output is calls. Otherwise it is text, and a call follows where the text has a trigger.
  bool must_call = false;
  bool parallel_calls = true;  // if false, the output ends after its first call
  std::vector<ToolDefinition> tools;
};

// REQUIRES: format is not null; tools is not empty.
StructuredOutputsParams ToolCallParams(const ToolCallConstraint& constraint);
// Returns true if the parameters are ToolCallParams of calls in the harmony format, whose grammar contains the
// thoughts.
bool ConstrainsHarmony(const StructuredOutputsParams& params);
// Reads the text of ToolCallParams. Throws RequestError.
ToolCallConstraint ParseToolCallConstraint(std::string_view text);

}  // namespace vllm
