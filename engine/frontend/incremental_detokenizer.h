// IncrementalDetokenizer: turns the token ids of one sequence into text, whole characters only. Ends the text at a stop
// string and holds back what may be the beginning of one. Results do not depend on how the ids are split into calls.
// Owned by the OutputProcessor.
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
  // The tokenizer must outlive this.
  IncrementalDetokenizer(const tokenizer::Tokenizer& tokenizer, const SamplingParams& params,
                         std::span<const int32_t> prompt_token_ids);

  // Appends tokens one by one until a stop string completes. Returns how many were appended, including the one that
  // completed it. REQUIRES: not stopped.
  size_t Append(std::span<const int32_t> token_ids);
  // Counts a token whose text is hidden: the stop token that ended the request.
  void AppendHidden() { ++num_tokens_; }
  // Ends the text: bytes of an incomplete character become U+FFFD. May complete a stop string.
  void Finish();

  // The stop string that ended the text, or null.
  const std::string* stop_string() const { return stop_index_ ? &checker_.stop(*stop_index_) : nullptr; }

  // The text that may be shown: all of it if `finished`, else without what may be the beginning of a stop string. With
  // `delta`, only what was added since the last call with `delta`. Valid until the next Append.
  std::string_view GetNextOutputText(bool finished, bool delta);

 private:
  // Searches for stop strings that end after the first `checked_size` bytes.
  void ApplyStopStrings(size_t checked_size);

  tokenizer::DecodeStream stream_;
  StopChecker checker_;
  int64_t min_tokens_;
  int64_t num_tokens_ = 0;
  std::string text_;
  size_t delta_start_ = 0;  // bytes of text_ that were given out as deltas
  std::optional<size_t> stop_index_;
};

}  // namespace vllm
