#include "app/batch/tools/call_constraints.h"

#include <algorithm>
#include <utility>

#include "engine/config/errors.h"
#include "engine/structured_output/compile_grammar.h"
#include "engine/structured_output/tool_calls/tool_call_constraint.h"
#include "tokenizer/token_bytes.h"

namespace vllm::app {

std::string CallConstraints::Obstacle(const SamplingParams& params) {
  if (format_ == nullptr) return "the format of the model's tool calls is not known; --tool-call-parser names it";
  if (params.ignore_eos) return "ignore_eos is set";
  if (!has_token_bytes_) has_token_bytes_ = tokenizer_ != nullptr && tokenizer::TokenBytes(*tokenizer_).has_value();
  return *has_token_bytes_ ? "" : "the tokens of the model are not pieces of text";
}

void CallConstraints::CheckSchemas(const StructuredOutputsParams& params) {
  if (checked_.size() == kMaxChecked || !checked_.insert(params.text).second) return;
  try {
    CompileGrammar(params, {}, &warnings_);
  } catch (const RequestError&) {
    // The engine reports it.
  }
}

void CallConstraints::Apply(const ToolRequest& request, SamplingParams& params) {
  if (!request.may_call()) return;
  const std::string obstacle = Obstacle(params);
  ToolCallConstraint constraint{format_, request.choice != ToolChoice::kAuto, request.parallel_calls,
                                request.tools->tools()};
  if (constraint.must_call) {
    const std::string choice = request.choice == ToolChoice::kRequired ? "required" : "a named tool";
    if (!obstacle.empty()) throw RequestError("tool_choice: " + choice + " is not possible: " + obstacle);
    if (params.structured_outputs) {
      throw RequestError("tool_choice: " + choice + " excludes structured_outputs and response_format");
    }
  }
  if (format_ != nullptr) params.skip_special_tokens = false;
  if (params.structured_outputs) return;
  if (!obstacle.empty()) {
    const auto strict = std::ranges::find(constraint.tools, true, &ToolDefinition::strict);
    if (strict != constraint.tools.end()) {
      throw RequestError("tool " + strict->name + ": strict is not possible: " + obstacle);
    }
    return;
  }
  if (request.choice == ToolChoice::kNamed) {
    std::erase_if(constraint.tools, [&](const ToolDefinition& tool) { return tool.name != request.named_tool; });
    constraint.parallel_calls = false;
  }
  params.structured_outputs = ToolCallParams(constraint);
  if (!constraint.must_call) CheckSchemas(*params.structured_outputs);
}

std::vector<std::string> CallConstraints::TakeWarnings() { return std::exchange(warnings_, {}); }

}  // namespace vllm::app
