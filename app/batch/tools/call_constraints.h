// CallConstraints: constrains the tool calls of requests to one model, so that their names are those of tools and their
// arguments match the schemas of the tools. Owned by the object that adds the requests; one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "app/batch/tools/tool_request.h"
#include "engine/request/sampling_params.h"
#include "engine/tool_calls/syntax/tool_call_format.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

class CallConstraints {
 public:
  // No model.
  CallConstraints() = default;
  // `format` is that of the model's calls, or null if it is unknown. `tokenizer` may be null.
  CallConstraints(const ToolCallFormat* format, std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
      : format_(format), tokenizer_(std::move(tokenizer)) {}

  const ToolCallFormat* format() const { return format_; }

  // Prepares the parameters of a request whose output ToolCallParser will read. If the model decides whether it calls a
  // tool, constraints of the caller come before those of the tools, and calls that cannot be constrained are free.
  // Throws RequestError if the choice, or a tool that is strict, cannot be enforced.
  void Apply(const ToolRequest& request, SamplingParams& params);

  // Returns the warnings since the last call, each once: schemas that are not enforced.
  std::vector<std::string> TakeWarnings();

 private:
  static constexpr size_t kMaxChecked = 64;

  // Returns why the calls of a request cannot be constrained, or "".
  std::string Obstacle(const SamplingParams& params);
  void CheckSchemas(const StructuredOutputsParams& params);

  const ToolCallFormat* format_ = nullptr;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::optional<bool> has_token_bytes_;  // nullopt: not known yet
  std::unordered_set<std::string> checked_;
  std::vector<std::string> warnings_;
};

}  // namespace vllm::app
