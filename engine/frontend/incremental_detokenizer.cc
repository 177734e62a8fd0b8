#include "engine/frontend/incremental_detokenizer.h"

#include <algorithm>

#include "tokenizer/unicode/utf8.h"

namespace vllm {

IncrementalDetokenizer::IncrementalDetokenizer(const tokenizer::Tokenizer& tokenizer, const SamplingParams& params,
                                               std::span<const int32_t> prompt_token_ids)
    : stream_(tokenizer, params.skip_special_tokens),
      checker_(params.stop, params.include_stop_str_in_output),
      min_tokens_(params.min_tokens) {
  // Most answers fit into this capacity, so their decode steps do not allocate. The buffer of a longer answer grows by
  // doubling.
  text_.reserve(static_cast<size_t>(std::clamp<int64_t>(params.max_tokens.value_or(0), 0, 1024)) * 4);
  stream_.Prime(prompt_token_ids);
}

void IncrementalDetokenizer::ApplyStopStrings(size_t checked_size) {
  // A stop string counts only if a token after the first min_tokens completes it.
  if (checker_.empty() || num_tokens_ <= min_tokens_) return;
  const auto match = checker_.Find(text_, text_.size() - checked_size);
  if (!match) return;
  stop_index_ = match->stop_index;
  text_.resize(match->output_size);
}

size_t IncrementalDetokenizer::Append(std::span<const int32_t> token_ids) {
  for (size_t i = 0; i < token_ids.size(); ++i) {
    const size_t checked_size = text_.size();
    stream_.Feed(token_ids[i], text_);
    ++num_tokens_;
    ApplyStopStrings(checked_size);
    if (stop_index_) return i + 1;
  }
  return token_ids.size();
}

void IncrementalDetokenizer::AppendPrior(std::span<const int32_t> token_ids) {
  for (const int32_t id : token_ids) stream_.Feed(id, text_);
  num_tokens_ = static_cast<int64_t>(token_ids.size());
  prior_size_ = text_.size();
  delta_start_ = prior_size_;
}

void IncrementalDetokenizer::Finish() {
  if (stop_index_) return;
  const size_t checked_size = text_.size();
  stream_.Flush(text_);
  ApplyStopStrings(checked_size);
}

std::string_view IncrementalDetokenizer::GetNextOutputText(bool finished, bool delta) {
  size_t size = text_.size();
  if (!finished) {
    for (size_t i = 0; i < checker_.holdback() && size > 0; ++i) size = tokenizer::PreviousCodePoint(text_, size);
  }
  if (size <= prior_size_) return {};  // a stop string that began in the prior text may have cut it
  if (!delta) return std::string_view(text_).substr(prior_size_, size - prior_size_);
  if (size <= delta_start_) return {};
  const std::string_view added = std::string_view(text_).substr(delta_start_, size - delta_start_);
  delta_start_ = size;
  return added;
}

}  // namespace vllm
