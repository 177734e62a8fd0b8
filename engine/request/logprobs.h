// Logprobs: the log-probabilities of consecutive positions in flat arrays, like vLLM's LogprobsLists. They are computed
// from the raw logits, before penalties and temperature. Plain values; not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vllm {

// Each position has `width` = k + 1 entries: first the chosen token, then the k most probable tokens by descending
// probability, which may include the chosen token again. Ties are ordered by token id.
struct Logprobs {
  size_t width = 0;
  std::vector<int32_t> token_ids;  // [num_positions, width]
  std::vector<float> logprobs;     // [num_positions, width]
  std::vector<int32_t> ranks;  // [num_positions] number of vocabulary entries at least as probable as the chosen token

  size_t num_positions() const { return ranks.size(); }
  bool empty() const { return ranks.empty(); }
  void Clear() {
    width = 0;
    token_ids.clear();
    logprobs.clear();
    ranks.clear();
  }
  // Appends all positions of `other`. REQUIRES: both have the same width, or one is empty.
  void Append(const Logprobs& other) { AppendFirst(other, other.num_positions()); }
  // Appends the first `count` positions of `other`, or all of its positions if it has fewer. REQUIRES: as for Append.
  void AppendFirst(const Logprobs& other, size_t count) {
    count = std::min(count, other.num_positions());
    if (count == 0) return;
    width = other.width;
    const auto entries = static_cast<std::ptrdiff_t>(count * width);
    token_ids.insert(token_ids.end(), other.token_ids.begin(), other.token_ids.begin() + entries);
    logprobs.insert(logprobs.end(), other.logprobs.begin(), other.logprobs.begin() + entries);
    ranks.insert(ranks.end(), other.ranks.begin(), other.ranks.begin() + static_cast<std::ptrdiff_t>(count));
  }
};

}  // namespace vllm
