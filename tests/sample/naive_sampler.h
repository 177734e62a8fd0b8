// NaiveDistribution: a slow, simple reference for the sampler. It sorts the whole vocabulary and computes probabilities
// in double precision. A pure function for tests; any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "engine/request/sampling_params.h"

namespace vllm {

// Returns the distribution that a token is drawn from, [row.size()]; all 0 if the largest logit is not finite, as when
// no token remains.
inline std::vector<double> NaiveDistribution(std::vector<float> row, const SamplingParams& params,
                                             const std::vector<int32_t>& prompt, const std::vector<int32_t>& output) {
  const float masked = -std::numeric_limits<float>::infinity();
  size_t size = row.size();
  if (params.allowed_token_ids) {
    std::set<int32_t> allowed(params.allowed_token_ids->begin(), params.allowed_token_ids->end());
    for (size_t i = 0; i < size; ++i) {
      if (!allowed.contains(static_cast<int32_t>(i))) row[i] = masked;
    }
  }
  for (const std::vector<int32_t>& word : params.bad_words_token_ids) {
    size_t prefix = word.size() - 1;
    bool matches = prefix <= output.size();
    for (size_t i = 0; matches && i < prefix; ++i) matches = output[output.size() - prefix + i] == word[i];
    if (matches) row[static_cast<size_t>(word.back())] = masked;
  }
  if (static_cast<int64_t>(output.size()) < params.min_tokens) {
    if (params.eos_token_id) row[static_cast<size_t>(*params.eos_token_id)] = masked;
    for (int32_t id : params.stop_token_ids) row[static_cast<size_t>(id)] = masked;
  }
  for (auto [id, bias] : params.logit_bias) row[static_cast<size_t>(id)] += bias;
  std::map<int32_t, int> counts;
  for (int32_t id : prompt) counts[id];
  for (int32_t id : output) ++counts[id];
  for (auto [id, count] : counts) {
    float& logit = row[static_cast<size_t>(id)];
    float repetition = static_cast<float>(params.repetition_penalty);
    logit = logit > 0 ? logit / repetition : logit * repetition;
    logit -= static_cast<float>(params.frequency_penalty) * static_cast<float>(count);
    if (count > 0) logit -= static_cast<float>(params.presence_penalty);
  }

  // Token ids in ascending order of logit, and ties in ascending order of id, as in vLLM's stable sort.
  std::vector<size_t> order(size);
  for (size_t i = 0; i < size; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return row[a] < row[b]; });
  double max = static_cast<double>(row[order.back()]);
  std::vector<double> probs(size, 0.0);
  if (!std::isfinite(max)) return probs;
  if (params.temperature == 0.0) {
    probs[static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin())] = 1.0;
    return probs;
  }
  auto scaled = [&](size_t i) { return (static_cast<double>(row[i]) - max) / params.temperature; };
  std::vector<bool> kept(size, true);
  if (params.min_p > 0.0) {
    for (size_t i = 0; i < size; ++i) kept[i] = scaled(i) >= std::log(params.min_p);
  }
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < size) {
    float kth = row[order[size - static_cast<size_t>(params.top_k)]];
    for (size_t i = 0; i < size; ++i) kept[i] = kept[i] && row[i] >= kth;
  }
  auto normalize = [&] {
    double total = 0.0;
    for (size_t i = 0; i < size; ++i) total += probs[i] = kept[i] ? std::exp(scaled(i)) : 0.0;
    for (double& p : probs) p /= total;
  };
  normalize();
  if (params.top_p < 1.0) {
    double cumulative = 0.0;
    for (size_t i : order) {
      cumulative += probs[i];
      if (cumulative <= 1.0 - params.top_p && i != order.back()) kept[i] = false;
    }
    normalize();
  }
  return probs;
}

}  // namespace vllm
