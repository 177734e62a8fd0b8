// VocabTrie: the bytes of the tokens of a vocabulary, and the tokens sorted to find those that a grammar allows next.
// Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/structured_output/matcher/token_slices.h"

namespace vllm {

class VocabTrie {
 public:
  // `token_bytes`: see tokenizer::TokenBytes. Leaves out tokens without bytes, those of more than kMaxTokenBytes bytes,
  // and ids outside [0, vocab_size).
  VocabTrie(std::vector<std::string> token_bytes, int64_t vocab_size);

  const TokenSlices& slices() const { return slices_; }
  // Returns the bytes of `token_id`, or an empty text if the trie does not contain it.
  std::string_view BytesOf(int32_t token_id) const;
  // The number of logits in a row. May be larger than the number of tokens.
  int64_t vocab_size() const { return vocab_size_; }
  size_t max_depth() const { return max_depth_; }

  static constexpr size_t kMaxTokenBytes = 1024;

 private:
  std::vector<std::string> token_bytes_;
  int64_t vocab_size_;
  size_t max_depth_ = 0;
  TokenSlices slices_;
};

}  // namespace vllm
