#include "engine/layers/mlp/expert_router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace vllm {

namespace {

using Candidate = std::pair<float, int64_t>;

// A strict weak ordering: larger values first, then smaller indices. NaN comes last.
bool Before(const Candidate& a, const Candidate& b) {
  const bool a_is_nan = std::isnan(a.first), b_is_nan = std::isnan(b.first);
  if (a_is_nan != b_is_nan) return b_is_nan;
  return a.first > b.first || (!(a.first < b.first) && a.second < b.second);
}

// Sets the scores of all candidates that are not in one of the topk_group best groups to minus infinity. The score of a
// group is that of its best candidate, or with adds_second the sum of the scores of its two best candidates.
void KeepBestGroups(const ExpertRouterSpec& spec, bool adds_second, MoeWorkspace& workspace) {
  const int64_t size = spec.num_experts / spec.n_group;
  std::vector<Candidate>& groups = workspace.groups;
  groups.clear();
  for (int64_t group = 0; group < spec.n_group; ++group) {
    const Candidate* members = workspace.candidates.data() + group * size;
    float best = std::max(members[0].first, members[1].first), second = std::min(members[0].first, members[1].first);
    for (int64_t i = 2; i < size; ++i) {
      const float x = members[i].first;
      second = std::max(second, std::min(best, x));
      best = std::max(best, x);
    }
    groups.emplace_back(adds_second ? best + second : best, group);
  }
  std::partial_sort(groups.begin(), groups.begin() + spec.topk_group, groups.end(), Before);
  for (auto it = groups.begin() + spec.topk_group; it != groups.end(); ++it) {
    for (int64_t i = 0; i < size; ++i) {
      workspace.candidates[static_cast<size_t>(it->second * size + i)].first = -std::numeric_limits<float>::infinity();
    }
  }
}

void ChooseBySoftmax(const ExpertRouterSpec& spec, const float* logits, MoeWorkspace& workspace) {
  std::vector<Candidate>& candidates = workspace.candidates;
  candidates.clear();
  for (int64_t i = 0; i < spec.num_experts; ++i) candidates.emplace_back(logits[i], i);
  if (spec.topk_group < spec.n_group) KeepBestGroups(spec, false, workspace);
  const auto chosen = candidates.begin() + spec.num_experts_per_tok;
  std::partial_sort(candidates.begin(), chosen, candidates.end(), Before);
  // The weights are a softmax over all experts. If the chosen weights are scaled to sum to 1, the result is a softmax
  // over the chosen experts only.
  const float max = candidates[0].first;
  float sum = 0.0f;
  if (spec.norm_topk_prob) {
    for (auto it = candidates.begin(); it != chosen; ++it) sum += std::exp(it->first - max);
  } else {
    for (int64_t i = 0; i < spec.num_experts; ++i) sum += std::exp(logits[i] - max);
  }
  const auto scale = static_cast<float>(spec.routed_scaling_factor);
  for (auto it = candidates.begin(); it != chosen; ++it) {
    workspace.chosen.emplace_back(it->second, std::exp(it->first - max) / sum * scale);
  }
}

void ComputeScores(const ExpertRouterSpec& spec, const float* logits, std::vector<float>& scores) {
  scores.assign(logits, logits + spec.num_experts);
  if (spec.score == ExpertScore::kSigmoid) {
    for (float& score : scores) score = 1.0f / (1.0f + std::exp(-score));
    return;
  }
  const float max = *std::max_element(scores.begin(), scores.end());
  float sum = 0.0f;
  for (float& score : scores) sum += score = std::exp(score - max);
  for (float& score : scores) score /= sum;
}

void ChooseByBiasedScores(const ExpertRouterSpec& spec, const float* logits, const float* bias,
                          MoeWorkspace& workspace) {
  std::vector<float>& scores = workspace.scores;
  ComputeScores(spec, logits, scores);
  std::vector<Candidate>& candidates = workspace.candidates;
  candidates.clear();
  for (int64_t i = 0; i < spec.num_experts; ++i) candidates.emplace_back(scores[static_cast<size_t>(i)] + bias[i], i);
  if (spec.topk_group < spec.n_group) KeepBestGroups(spec, true, workspace);
  const auto chosen = candidates.begin() + spec.num_experts_per_tok;
  std::partial_sort(candidates.begin(), chosen, candidates.end(), Before);
  float divisor = 1.0f;
  if (spec.norm_topk_prob) {
    float sum = 0.0f;
    for (auto it = candidates.begin(); it != chosen; ++it) sum += scores[static_cast<size_t>(it->second)];
    divisor = std::max(sum + static_cast<float>(spec.norm_eps), static_cast<float>(spec.norm_min));
  }
  const auto scale = static_cast<float>(spec.routed_scaling_factor);
  for (auto it = candidates.begin(); it != chosen; ++it) {
    workspace.chosen.emplace_back(it->second, scores[static_cast<size_t>(it->second)] / divisor * scale);
  }
}

// Appends the expert with the largest logit except `excluded`. The formula is that of transformers' sparsemixer.
void ChooseBySparseMixer(const ExpertRouterSpec& spec, const float* logits, int64_t excluded, MoeWorkspace& workspace) {
  Candidate best{std::numeric_limits<float>::quiet_NaN(), spec.num_experts};
  for (int64_t i = 0; i < spec.num_experts; ++i) {
    const Candidate candidate{logits[i], i};
    if (i != excluded && Before(candidate, best)) best = candidate;
  }
  const float max = best.first;
  const auto limit = static_cast<float>(2.0 * spec.jitter_noise);
  float sum = 0.0f;
  for (int64_t i = 0; i < spec.num_experts; ++i) {
    const bool is_far = (max - logits[i]) / std::max(std::fabs(logits[i]), max) > limit;
    if (i != excluded && !is_far) sum += std::exp(logits[i] - max);
  }
  workspace.chosen.emplace_back(best.second, 1.0f / sum);
}

}  // namespace

void ChooseExperts(const ExpertRouterSpec& spec, const float* logits, const float* correction_bias,
                   MoeWorkspace& workspace) {
  if (spec.score == ExpertScore::kSparseMixer) {
    ChooseBySparseMixer(spec, logits, -1, workspace);
    return ChooseBySparseMixer(spec, logits, workspace.chosen.back().first, workspace);
  }
  if (correction_bias == nullptr) return ChooseBySoftmax(spec, logits, workspace);
  ChooseByBiasedScores(spec, logits, correction_bias, workspace);
}

}  // namespace vllm
