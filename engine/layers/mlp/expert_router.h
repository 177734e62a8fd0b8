// ChooseExperts: turns the router's logits of one row into the experts that process it and their weights. Pure
// function; any thread.
#pragma once

#include <cstdint>

#include "engine/layers/moe_workspace.h"

namespace vllm {

// How the scores of the experts follow from the logits. kSoftmax: softmax over all experts. kSigmoid: sigmoid of each
// logit (DeepSeek-V3, arXiv 2412.19437). kSparseMixer (arXiv 2409.12136) chooses two experts; the weight of each is a
// softmax over the logits that are close to its own and were not chosen before.
enum class ExpertScore : uint8_t { kSoftmax, kSigmoid, kSparseMixer };

struct ExpertRouterSpec {
  int64_t num_experts = 0;
  int64_t num_experts_per_tok = 0;
  ExpertScore score = ExpertScore::kSoftmax;
  bool norm_topk_prob = false;         // scale the weights of the chosen experts to sum to 1
  double norm_min = 0.0;               // with norm_topk_prob and a correction bias: the least divisor
  double norm_eps = 0.0;               // ... added to the divisor
  double routed_scaling_factor = 1.0;  // multiplies the weights
  double jitter_noise = 0.0;           // kSparseMixer: logits are close if they differ by at most twice this fraction
  int64_t n_group = 1;                 // experts are chosen only from the topk_group best of n_group equal groups
  int64_t topk_group = 1;
};

// Appends num_experts_per_tok pairs of expert and weight to workspace.chosen. With `correction_bias`, [num_experts],
// experts are chosen by score plus bias, a group counts the sum of its two best experts, and the weights are the scores
// without bias. Without correction_bias, a group counts its best expert (DeepSeek-V2's group_limited_greedy). If two
// scores are equal, the smaller index wins. NaN loses. logits: [num_experts].
//
// REQUIRES: without correction_bias, score is not kSigmoid. With kSparseMixer, there is no correction_bias, n_group is
// 1 and num_experts_per_tok is 2. n_group divides num_experts into groups of at least 2, and topk_group groups have at
// least num_experts_per_tok experts.
void ChooseExperts(const ExpertRouterSpec& spec, const float* logits, const float* correction_bias,
                   MoeWorkspace& workspace);

}  // namespace vllm
