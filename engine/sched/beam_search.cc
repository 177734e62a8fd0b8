#include "engine/sched/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace vllm {

void SelectBeams(std::span<const BeamRow> rows, size_t width, std::span<const int32_t> end_token_ids,
                 BeamSelection& selection) {
  selection.completed.clear();
  selection.live.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Logprobs& top = *rows[i].top;
    for (size_t entry = 1; entry < top.width; ++entry) {
      const float logprob = top.logprobs[entry];
      if (!(logprob > -std::numeric_limits<float>::infinity())) continue;
      const BeamCandidate candidate{i, top.token_ids[entry], rows[i].cumulative_logprob + static_cast<double>(logprob)};
      const bool ends =
          std::find(end_token_ids.begin(), end_token_ids.end(), candidate.token_id) != end_token_ids.end();
      (ends ? selection.completed : selection.live).push_back(candidate);
    }
  }
  const auto precedes = [](const BeamCandidate& a, const BeamCandidate& b) {
    if (a.cumulative_logprob != b.cumulative_logprob) return a.cumulative_logprob > b.cumulative_logprob;
    return std::pair(a.beam_index, a.token_id) < std::pair(b.beam_index, b.token_id);
  };
  const size_t num_live = std::min(width, selection.live.size());
  std::partial_sort(selection.live.begin(), selection.live.begin() + static_cast<std::ptrdiff_t>(num_live),
                    selection.live.end(), precedes);
  selection.live.resize(num_live);
}

double BeamScore(double cumulative_logprob, int64_t num_tokens, double length_penalty) {
  return cumulative_logprob / std::pow(static_cast<double>(num_tokens), length_penalty);
}

void AddHypothesis(BeamHypothesis hypothesis, size_t width, std::vector<BeamHypothesis>& best) {
  const auto position =
      std::upper_bound(best.begin(), best.end(), hypothesis,
                       [](const BeamHypothesis& a, const BeamHypothesis& b) { return a.score > b.score; });
  best.insert(position, std::move(hypothesis));
  if (best.size() > width) best.pop_back();
}

}  // namespace vllm
