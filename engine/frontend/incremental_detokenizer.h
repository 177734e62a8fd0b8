// IncrementalDetokenizer: turns the token ids of one sequence into text that contains only complete characters. Ends
// the text at a stop string. While the sequence runs, holds back the last StopChecker::holdback() characters, because a
// stop string could begin there. The text does not depend on how the ids are split into calls to Append. Owned by a
// RequestState; front-end thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/frontend/stop_checker.h"
#include "engine/request/sampling_params.h"
#include "tokenizer/decode_stream.h"

namespace vllm::tokenizer {
class Tokenizer;
}

namespace vllm {

class IncrementalDetokenizer {
 public:
  // The tokenizer must outlive this object.
  IncrementalDetokenizer(const tokenizer::Tokenizer& tokenizer, const SamplingParams& params,
                         std::span<const int32_t> prompt_token_ids);

  // Appends tokens one by one until one of them completes a stop string. Returns the number of appended tokens,
  // including the one that completed the stop string. REQUIRES: stop_string() is null.
  size_t Append(std::span<const int32_t> token_ids);
  // Appends tokens of an earlier run whose text was returned then: no call of GetNextOutputText returns it. Call this
  // before Append. A stop string that begins in this text still ends the output.
  void AppendPrior(std::span<const int32_t> token_ids);
  // Counts a token without adding its text: the stop token that ended the sequence.
  void AppendHidden() { ++num_tokens_; }
  // Ends the text: bytes of an incomplete character become U+FFFD. May complete a stop string.
  void Finish();

  // The stop string that ended the text, or null.
  const std::string* stop_string() const { return stop_index_ ? &checker_.stop(*stop_index_) : nullptr; }

  // Returns the text that may be shown: all text if `finished`, else the text without the characters that are held
  // back. With `delta`, returns only the part that no earlier call with `delta` has returned. Valid until the next
  // Append or Finish.
  std::string_view GetNextOutputText(bool finished, bool delta);

 private:
  // Ends the text at a stop string if one ends after the first `checked_size` bytes. Does nothing during the first
  // min_tokens tokens.
  void ApplyStopStrings(size_t checked_size);

  tokenizer::DecodeStream stream_;
  StopChecker checker_;
  int64_t min_tokens_;
  int64_t num_tokens_ = 0;
  std::string text_;
  size_t prior_size_ = 0;   // bytes of text_ from AppendPrior
  size_t delta_start_ = 0;  // bytes of text_ already returned as deltas
  std::optional<size_t> stop_index_;
};

}  // namespace vllm
