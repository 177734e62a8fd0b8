// ReferenceBeamSearch: beam search as vLLM does it, without an engine. Each step asks for the logprobs after every beam
// and keeps nothing else. Written independently of engine/sched/beam_search.h. A pure function.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace vllm::testing_support {

struct ReferenceSequence {
  std::vector<int32_t> token_ids;  // generated, with the EOS
  double cumulative_logprob = 0.0;
  double score = 0.0;
  bool has_eos = false;

  friend bool operator==(const ReferenceSequence&, const ReferenceSequence&) = default;
};

// Returns the `count` most probable tokens after the generated tokens, with their logprobs, the best first.
using TopLogprobs =
    std::function<std::vector<std::pair<int32_t, float>>(const std::vector<int32_t>& token_ids, size_t count)>;

inline std::vector<ReferenceSequence> ReferenceBeamSearch(const TopLogprobs& top, size_t width, double length_penalty,
                                                          int64_t max_tokens, const std::set<int32_t>& eos) {
  std::vector<ReferenceSequence> beams(1), finished;
  for (int64_t step = 0; step < max_tokens && !beams.empty(); ++step) {
    std::vector<std::tuple<double, size_t, int32_t>> candidates;  // negated logprob, beam, token
    for (size_t b = 0; b < beams.size(); ++b) {
      for (const auto& [token, logprob] : top(beams[b].token_ids, 2 * width)) {
        const double sum = beams[b].cumulative_logprob + static_cast<double>(logprob);
        if (!eos.contains(token)) {
          candidates.emplace_back(-sum, b, token);
          continue;
        }
        finished.push_back({beams[b].token_ids, sum, 0.0, true});
        finished.back().token_ids.push_back(token);
      }
    }
    std::sort(candidates.begin(), candidates.end());
    std::vector<ReferenceSequence> next;
    for (const auto& [negated, b, token] : candidates) {
      if (next.size() == width) break;
      next.push_back({beams[b].token_ids, -negated, 0.0, false});
      next.back().token_ids.push_back(token);
    }
    beams = std::move(next);
  }
  finished.insert(finished.end(), beams.begin(), beams.end());
  for (ReferenceSequence& s : finished) {
    s.score = s.cumulative_logprob / std::pow(static_cast<double>(s.token_ids.size()), length_penalty);
  }
  std::stable_sort(finished.begin(), finished.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  if (finished.size() > width) finished.resize(width);
  return finished;
}

}  // namespace vllm::testing_support
