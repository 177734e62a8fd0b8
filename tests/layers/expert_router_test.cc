// Tests which experts a row is routed to, and with which weights.
#include "engine/layers/mlp/expert_router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace vllm {
namespace {

using Chosen = std::vector<std::pair<int64_t, float>>;

Chosen Choose(ExpertRouterSpec spec, const std::vector<float>& logits, const std::vector<float>& bias = {}) {
  spec.num_experts = static_cast<int64_t>(logits.size());
  MoeWorkspace workspace;
  ChooseExperts(spec, logits.data(), bias.empty() ? nullptr : bias.data(), workspace);
  return workspace.chosen;
}

std::vector<int64_t> Experts(const Chosen& chosen) {
  std::vector<int64_t> experts;
  for (const auto& [expert, weight] : chosen) experts.push_back(expert);
  return experts;
}

// The logit whose sigmoid is p.
float Logit(float p) { return std::log(p / (1.0f - p)); }

TEST(ExpertRouterTest, WeightsAreASoftmaxOverAllExpertsOrOverTheChosenOnes) {
  const std::vector<float> logits = {0.0f, std::log(2.0f), std::log(4.0f)};
  ExpertRouterSpec spec{.num_experts_per_tok = 2};
  const Chosen all = Choose(spec, logits);
  EXPECT_EQ(Experts(all), (std::vector<int64_t>{2, 1}));
  EXPECT_NEAR(all[0].second, 4.0f / 7.0f, 1e-6f);
  EXPECT_NEAR(all[1].second, 2.0f / 7.0f, 1e-6f);
  spec.norm_topk_prob = true;
  spec.routed_scaling_factor = 3.0;
  EXPECT_NEAR(Choose(spec, logits)[0].second, 2.0f, 1e-6f);
}

TEST(ExpertRouterTest, TheBiasChangesTheChoiceAndNotTheWeights) {
  ExpertRouterSpec spec{.num_experts_per_tok = 1, .score = ExpertScore::kSigmoid};
  const std::vector<float> logits = {Logit(0.5f), Logit(0.75f)};
  EXPECT_EQ(Experts(Choose(spec, logits, {0.0f, 0.0f})), std::vector<int64_t>{1});
  const Chosen chosen = Choose(spec, logits, {0.5f, 0.0f});
  EXPECT_EQ(Experts(chosen), std::vector<int64_t>{0});
  EXPECT_NEAR(chosen[0].second, 0.5f, 1e-6f);
}

TEST(ExpertRouterTest, TheDivisorIsAtLeastNormMin) {
  ExpertRouterSpec spec{.num_experts_per_tok = 1, .norm_topk_prob = true, .norm_min = 0.75};
  EXPECT_NEAR(Choose(spec, {1.0f, 1.0f}, {0.0f, 0.0f})[0].second, 0.5f / 0.75f, 1e-6f);
  spec.norm_min = 0.1;
  EXPECT_NEAR(Choose(spec, {1.0f, 1.0f}, {0.0f, 0.0f})[0].second, 1.0f, 1e-6f);
}

TEST(ExpertRouterTest, ExpertsAreChosenFromTheGroupsWithTheBestTwoExperts) {
  // The best expert is in the first group, but the two best of the second group have a larger sum.
  const std::vector<float> logits = {Logit(0.9f), Logit(0.1f), Logit(0.2f), Logit(0.6f), Logit(0.7f), Logit(0.3f)};
  const std::vector<float> bias(6);
  ExpertRouterSpec spec{.num_experts_per_tok = 2, .score = ExpertScore::kSigmoid, .n_group = 2, .topk_group = 1};
  EXPECT_EQ(Experts(Choose(spec, logits, bias)), (std::vector<int64_t>{4, 3}));
  spec.topk_group = 2;
  EXPECT_EQ(Experts(Choose(spec, logits, bias)), (std::vector<int64_t>{0, 4}));
  spec.n_group = 3;
  EXPECT_EQ(Experts(Choose(spec, logits, bias)), (std::vector<int64_t>{0, 4}));
}

TEST(ExpertRouterTest, WithoutABiasExpertsAreChosenFromTheGroupsWithTheBestExpert) {
  const std::vector<float> logits = {std::log(9.0f), std::log(1.0f), std::log(2.0f),
                                     std::log(6.0f), std::log(7.0f), std::log(3.0f)};
  ExpertRouterSpec spec{.num_experts_per_tok = 2, .routed_scaling_factor = 2.0, .n_group = 2, .topk_group = 1};
  const Chosen chosen = Choose(spec, logits);
  EXPECT_EQ(Experts(chosen), (std::vector<int64_t>{0, 2}));
  // The softmax is over the experts of all groups.
  EXPECT_NEAR(chosen[0].second, 2.0f * 9.0f / 28.0f, 1e-6f);
  EXPECT_NEAR(chosen[1].second, 2.0f * 2.0f / 28.0f, 1e-6f);
  spec.topk_group = 2;
  EXPECT_EQ(Experts(Choose(spec, logits)), (std::vector<int64_t>{0, 4}));
}

TEST(ExpertRouterTest, TheSmallerOfTwoEqualExpertsIsChosenAndNaNIsNot) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ExpertRouterSpec spec{.num_experts_per_tok = 2};
  EXPECT_EQ(Experts(Choose(spec, {1.0f, 2.0f, 2.0f, 2.0f})), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(Experts(Choose(spec, {nan, -5.0f, nan, -4.0f})), (std::vector<int64_t>{3, 1}));
}

TEST(ExpertRouterTest, SparseMixerWeighsOnlyLogitsThatAreClose) {
  const ExpertRouterSpec spec{.num_experts_per_tok = 2, .score = ExpertScore::kSparseMixer, .jitter_noise = 0.1};
  // 9 is within 20 % of 10, and 8.5 within 20 % of 9; 1 is close to neither.
  const Chosen chosen = Choose(spec, {1.0f, 10.0f, 8.5f, 9.0f});
  EXPECT_EQ(Experts(chosen), (std::vector<int64_t>{1, 3}));
  EXPECT_NEAR(chosen[0].second, 1.0f / (1.0f + std::exp(-1.0f) + std::exp(-1.5f)), 1e-6f);
  EXPECT_NEAR(chosen[1].second, 1.0f / (1.0f + std::exp(-0.5f)), 1e-6f);
}

}  // namespace
}  // namespace vllm
