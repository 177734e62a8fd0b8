// Log-probabilities of a run of positions in one flat block, as vLLM's LogprobsLists. Raw: before temperature and
// penalties.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vllm {

// Each position has `width` = k + 1 entries: first the chosen token, then the k most probable in falling order (the
// chosen one may occur among them again). Ties order by token id.
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
  // REQUIRES: the same width, or this is empty.
  void Append(const Logprobs& other) { AppendFirst(other, other.num_positions()); }
  // The first `count` positions of `other` only, or all when it has fewer. REQUIRES: as Append.
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
