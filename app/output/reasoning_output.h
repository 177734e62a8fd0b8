// ReasoningOutput: splits the outputs of one request into thoughts and answers, one splitter per sequence. Owned by the
// object that writes the outputs; main thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/reasoning/reasoning_splitter.h"
#include "engine/request/request_output.h"

namespace vllm::app {

class ReasoningOutput {
 public:
  // `format` may be null: nothing is split. `skip_special_tokens` is that of the request.
  ReasoningOutput(std::shared_ptr<const ReasoningFormat> format, bool skip_special_tokens)
      : format_(std::move(format)), skip_special_tokens_(skip_special_tokens) {}

  // Returns the new parts of `completion`, or nullopt without a format. REQUIRES: the outputs are deltas, or final
  // only.
  std::optional<ReasoningParts> Take(const RequestOutput& output, const CompletionOutput& completion);

 private:
  std::shared_ptr<const ReasoningFormat> format_;
  bool skip_special_tokens_;
  std::vector<int32_t> prompt_token_ids_;
  std::map<int64_t, ReasoningSplitter> splitters_;  // by index
};

}  // namespace vllm::app
