#include "engine/structured_output/tool_calls/tool_call_constraint.h"

#include <stdexcept>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm {
namespace {

constexpr char kWhere[] = "tool calls";

const ToolCallFormat* FormatOf(const tokenizer::RawMembers& members) {
  const std::string name = tokenizer::OptionalString(members, "format", kWhere);
  const ToolCallFormat* format = FindToolCallFormat(name);
  if (format == nullptr) throw RequestError("tool calls: the format " + Escape(name, 64) + " is not known");
  return format;
}

}  // namespace

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

bool ConstrainsHarmony(const StructuredOutputsParams& params) {
  if (params.kind != StructuredOutputsParams::Kind::kToolCalls) return false;
  try {
    return IsHarmony(FormatOf(tokenizer::ReadMembers(params.text, kWhere)));
  } catch (const std::runtime_error&) {
    return false;  // compiling the grammar reports it
  }
}

ToolCallConstraint ParseToolCallConstraint(std::string_view text) {
  ToolCallConstraint constraint;
  try {
    const tokenizer::RawMembers members = tokenizer::ReadMembers(text, kWhere);
    constraint.format = FormatOf(members);
    constraint.must_call = tokenizer::OptionalBool(members, "must_call", kWhere);
    constraint.parallel_calls = tokenizer::OptionalBool(members, "parallel_tool_calls", kWhere);
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
