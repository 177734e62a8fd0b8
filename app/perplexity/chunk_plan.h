// ChunkPlan: how the tokens of a text are divided into chunks for its perplexity, and which tokens of a chunk count.
// The rules are those of llama.cpp's llama-perplexity. A plain value; any thread.
//
// Without a stride, the text is cut into chunks of `context` tokens, and an incomplete one at the end is left out. The
// tokens after the middle of a chunk count. With 10 tokens, context 4: [0 1 2 3] [4 5 6 7], of which 3 and 7 count.
//
// With a stride, chunks of `context` tokens begin every `stride` tokens, as long as a token follows the chunk, and the
// last `stride` tokens of each count. With 10 tokens, context 4 and stride 2: [0 1 2 3] [2 3 4 5] [4 5 6 7], of which
// 2 and 3, 4 and 5, 6 and 7 count.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace vllm::app {

struct ChunkPlan {
  static constexpr int64_t kMinContext = 4;

  int64_t context = 512;                // tokens per chunk, at least kMinContext
  int64_t stride = 0;                   // in tokens, less than `context`; 0: chunks do not overlap
  std::optional<int32_t> bos_token_id;  // replaces the first token of each chunk

  // Returns the number of chunks of a text of `num_tokens` tokens. 0: the text is too short.
  int64_t NumChunks(int64_t num_tokens) const;
  // Returns the least number of tokens of a text with a chunk.
  int64_t MinTokens() const { return stride > 0 ? context + 1 : context; }
  // Returns the position in a chunk of the first token that counts, at least 1. All tokens after it count as well.
  int64_t FirstCounted() const { return stride > 0 ? context - stride : context / 2 + 1; }
  // Returns the tokens of a chunk. REQUIRES: chunk_index is less than NumChunks(tokens.size()).
  std::vector<int32_t> Chunk(std::span<const int32_t> tokens, int64_t chunk_index) const;
};

// Returns the token that the tokenizer adds at the beginning of every text, or nullopt if it adds none.
std::optional<int32_t> BosTokenOf(const tokenizer::Tokenizer& tokenizer);

}  // namespace vllm::app
