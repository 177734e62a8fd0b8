#include "engine/structured_output/tool_calls/tool_call_constraint.h"

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm {

// In harmony, the thought, the text and the calls are messages of one output, so a call does not follow the thought.
bool CanConstrainCalls(const ToolCallFormat& format) { return format.reader != ToolCallFormat::Reader::kHarmony; }

StructuredOutputsParams ToolCallParams(const ToolCallConstraint& constraint) {
  const auto text_of = [](bool value) { return value ? "true" : "false"; };
  // The names need no escapes: see IsToolName.
  std::string text = "{\"format\": \"" + std::string(constraint.format->name) +
                     "\", \"must_call\": " + text_of(constraint.must_call) +
                     ", \"parallel_tool_calls\": " + text_of(constraint.parallel_calls) + ", \"tools\": [";
  for (const ToolDefinition& tool : constraint.tools) {
    text += (&tool == constraint.tools.data() ? "" : ", ") + std::string("{\"name\": \"") + tool.name +
            "\", \"strict\": " + text_of(tool.strict) + ", \"parameters\": " + tool.parameters + "}";
  }
  StructuredOutputsParams params{text + "]}", StructuredOutputsParams::Kind::kToolCalls};
  // Models write arguments with spaces, and in the order that they like.
  params.any_order = true;
  params.flexible_whitespace = true;
  return params;
}

ToolCallConstraint ParseToolCallConstraint(std::string_view text) {
  const std::string where = "tool calls";
  ToolCallConstraint constraint;
  try {
    const tokenizer::RawMembers members = tokenizer::ReadMembers(text, where);
    const std::string format = tokenizer::OptionalString(members, "format", where);
    constraint.format = FindToolCallFormat(format);
    if (constraint.format == nullptr || !CanConstrainCalls(*constraint.format)) {
      throw RequestError("tool calls of the format " + Escape(format, 64) + " cannot be constrained");
    }
    constraint.must_call = tokenizer::OptionalBool(members, "must_call", where);
    constraint.parallel_calls = tokenizer::OptionalBool(members, "parallel_tool_calls", where);
    if (const auto tools = members.find("tools"); tools != members.end()) {
      constraint.tools = ParseToolDefinitions(tools->second);
    }
  } catch (const tokenizer::TokenizerError& error) {
    throw RequestError(error.what());
  }
  if (constraint.tools.empty()) throw RequestError("tool calls: there are no tools");
  return constraint;
}

}  // namespace vllm
