#include "engine/worker/logits_buffer.h"

#include <algorithm>

namespace vllm {

int64_t LogitsBuffer::MaxRows(const VllmConfig& config) {
  // Enough rows to amortize reading the output projection, but so few that the logits of a large vocabulary take only
  // tens of megabytes.
  constexpr int64_t kMaxRows = 64;
  const int64_t rows = std::max<int64_t>(config.scheduler.max_num_seqs, 1) * (1 + config.speculative.MaxDrafts());
  return std::min({kMaxRows, config.scheduler.max_num_batched_tokens, rows});
}

}  // namespace vllm
