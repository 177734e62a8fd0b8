#include "app/output/reasoning_output.h"

namespace vllm::app {

std::optional<ReasoningParts> ReasoningOutput::Take(const RequestOutput& output, const CompletionOutput& completion) {
  if (format_ == nullptr) return std::nullopt;
  if (!output.prompt_token_ids.empty()) prompt_token_ids_ = output.prompt_token_ids;
  ReasoningSplitter& splitter =
      splitters_.try_emplace(completion.index, format_, prompt_token_ids_, skip_special_tokens_).first->second;
  ReasoningParts parts;
  splitter.Feed(completion.token_ids, completion.text, completion.finish_reason != FinishReason::kNone, parts);
  return parts;
}

}  // namespace vllm::app
