#include "app/output/reasoning_display.h"

#include <utility>

namespace vllm::app {

ReasoningDisplay::ReasoningDisplay(std::shared_ptr<const ReasoningFormat> format, bool skip_special_tokens,
                                   ShowThinking mode, std::string hint, bool keeps_markers)
    : format_(std::move(format)),
      skip_special_tokens_(skip_special_tokens),
      keeps_markers_(keeps_markers),
      display_(mode, std::move(hint)) {}

void ReasoningDisplay::Begin(std::span<const int32_t> prompt_token_ids, std::span<const int32_t> prior_token_ids,
                             const std::string& prior_text) {
  parts_ = {};
  if (format_ != nullptr) splitter_.emplace(format_, prompt_token_ids, skip_special_tokens_, keeps_markers_);
  Add(prior_token_ids, prior_text, false);
}

void ReasoningDisplay::Add(std::span<const int32_t> token_ids, std::string_view text, bool finished) {
  if (!splitter_) {
    parts_.text += text;
    return;
  }
  splitter_->Feed(token_ids, text, finished, parts_);
}

std::string ReasoningDisplay::Take(const CompletionOutput& delta) {
  const size_t text_size = parts_.text.size();
  const size_t thinking_size = parts_.reasoning.size();
  const bool was_thinking = is_thinking();
  Add(delta.token_ids, delta.text, delta.finish_reason != FinishReason::kNone);
  if (was_thinking || is_thinking() || parts_.reasoning.size() > thinking_size || display_.is_shown()) {
    display_.Think(std::string_view(parts_.reasoning).substr(thinking_size), num_thinking_ids());
  }
  // An aborted thought may continue after RestOfEndMarker.
  const bool is_over =
      !is_thinking() || (delta.finish_reason != FinishReason::kNone && delta.finish_reason != FinishReason::kAbort);
  if (is_over) display_.End();
  return parts_.text.substr(text_size);
}

}  // namespace vllm::app
