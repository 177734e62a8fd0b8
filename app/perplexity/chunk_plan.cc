#include "app/perplexity/chunk_plan.h"

#include <algorithm>

namespace vllm::app {

int64_t ChunkPlan::NumChunks(int64_t num_tokens) const {
  if (num_tokens < MinTokens()) return 0;
  return stride > 0 ? (num_tokens - context + stride - 1) / stride : num_tokens / context;
}

std::vector<int32_t> ChunkPlan::Chunk(std::span<const int32_t> tokens, int64_t chunk_index) const {
  const int64_t start = chunk_index * (stride > 0 ? stride : context);
  const auto part = tokens.subspan(static_cast<size_t>(start), static_cast<size_t>(context));
  std::vector<int32_t> chunk(part.begin(), part.end());
  if (bos_token_id) chunk.front() = *bos_token_id;
  return chunk;
}

std::optional<int32_t> BosTokenOf(const tokenizer::Tokenizer& tokenizer) {
  // Some tokenizers add a token only at the end, so the text must not be empty.
  const std::vector<int32_t> bare = tokenizer.Encode("a", /*add_special_tokens=*/false);
  const std::vector<int32_t> full = tokenizer.Encode("a", /*add_special_tokens=*/true);
  const auto at = std::search(full.begin(), full.end(), bare.begin(), bare.end());
  if (at == full.begin() || at == full.end()) return std::nullopt;
  return full.front();
}

}  // namespace vllm::app
