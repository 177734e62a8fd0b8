#include "engine/sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace vllm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<double> Probs(std::vector<float> logits, const SamplingParams& params, std::vector<int32_t> prompt = {},
                          std::vector<int32_t> output = {}) {
  Sampler sampler(static_cast<int64_t>(logits.size()));
  return sampler.Distribution({logits, &params, prompt, output});
}

std::set<int> Support(const std::vector<double>& probs) {
  std::set<int> support;
  for (size_t i = 0; i < probs.size(); ++i) {
    if (probs[i] > 0.0) support.insert(static_cast<int>(i));
  }
  return support;
}

int32_t SampleOne(std::vector<float> logits, const SamplingParams& params, std::string* error = nullptr,
                  std::vector<int32_t> output = {}, Logprobs* logprobs = nullptr) {
  Sampler sampler(static_cast<int64_t>(logits.size()));
  std::string text;
  int32_t token = sampler.Sample({logits, &params, {}, output}, logprobs, text);
  if (error != nullptr) *error = text;
  return token;
}

SamplingParams Greedy() {
  SamplingParams params;
  params.temperature = 0.0;
  return params;
}

TEST(SamplerTest, GreedyReturnsTheFirstOfEqualMaxima) {
  EXPECT_EQ(SampleOne({1, 3, 2, 3}, Greedy()), 1);
  std::vector<float> wide(200, -1.0f);
  wide[130] = wide[199] = 5.0f;
  EXPECT_EQ(SampleOne(wide, Greedy()), 130);
}

TEST(SamplerTest, OnlyTokensOfTheBitmaskAreSampled) {
  Sampler sampler(40);
  std::vector<float> logits(40, 1.0f);
  logits[0] = logits[32] = 50.0f;
  const std::vector<uint32_t> bitmask = {1u << 31, 1u << 1 | 1u << 7};
  SamplingParams params;
  params.logit_bias = {{0, 100.0f}};  // brings no token back
  EXPECT_EQ(Support(sampler.Distribution({.logits = logits, .params = &params, .bitmask = bitmask})),
            (std::set<int>{31, 33, 39}));
  const std::vector<uint32_t> none = {0, 0};
  EXPECT_EQ(Support(sampler.Distribution({.logits = logits, .params = &params, .bitmask = none})), std::set<int>());
}

TEST(SamplerTest, LogprobsAreThoseWithoutTheBitmask) {
  SamplingParams params = Greedy();
  params.logprobs = 1;
  const std::vector<uint32_t> bitmask = {2};
  Logprobs masked, all;
  std::string error;
  std::vector<float> logits = {3.0f, 1.0f, 2.0f};
  EXPECT_EQ(Sampler(3).Sample({.logits = logits, .params = &params, .bitmask = bitmask}, &masked, error), 1);
  logits = {3.0f, 1.0f, 2.0f};
  Sampler(3).AppendLogprobs(logits, 1, 1, all);
  EXPECT_EQ(masked.token_ids, all.token_ids);
  EXPECT_EQ(masked.logprobs, all.logprobs);
}

TEST(SamplerTest, ProcessedLogprobsAreThoseOfTheDistribution) {
  const std::vector<uint32_t> bitmask = {0b110110};
  const std::vector<float> logits = {9.0f, 1.0f, 2.0f, 7.0f, 0.5f, -1.0f};
  const auto check = [&](SamplingParams params, std::span<const uint32_t> mask) {
    params.logprobs = 3;
    std::vector<float> row = logits;
    Sampler sampler(6, kernels::KernelsFor(kernels::BestIsa()), /*processed_logprobs=*/true);
    const std::vector<double> probs = sampler.Distribution({.logits = row, .params = &params, .bitmask = mask});
    row = logits;
    Logprobs out;
    std::string error;
    const int32_t token = sampler.Sample({.logits = row, .params = &params, .bitmask = mask}, &out, error);
    ASSERT_GE(token, 0) << error;
    std::vector<int32_t> ids = {0, 1, 2, 3, 4, 5};
    std::erase_if(ids, [&](int32_t id) { return probs[static_cast<size_t>(id)] == 0.0; });
    std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
      return probs[static_cast<size_t>(a)] > probs[static_cast<size_t>(b)];
    });
    ids.resize(3, -1);
    EXPECT_EQ(out.width, 4u);
    EXPECT_EQ(std::vector<int32_t>(out.token_ids.begin() + 1, out.token_ids.end()), ids);
    EXPECT_EQ(out.token_ids[0], token);
    for (size_t i = 0; i < 4; ++i) {
      const int32_t id = out.token_ids[i];
      if (id < 0) {
        EXPECT_EQ(out.logprobs[i], -kInf);
      } else {
        EXPECT_NEAR(out.logprobs[i], std::log(probs[static_cast<size_t>(id)]), 1e-5);
      }
    }
    const auto rank = std::find(ids.begin(), ids.end(), token) - ids.begin() + 1;
    EXPECT_EQ(out.ranks[0], rank);
  };
  SamplingParams params;
  params.temperature = 2.0;
  check(params, bitmask);
  check(params, {});
  params.top_k = 2;
  check(params, bitmask);
  params.top_k = 0;
  params.top_p = 0.6;
  check(params, bitmask);
  const std::vector<uint32_t> two = {0b100010};
  params = {};
  params.top_k = 3;
  check(params, two);
}

TEST(SamplerTest, ProcessedLogprobsOfGreedyAndForcedTokens) {
  SamplingParams params = Greedy();
  params.logprobs = 2;
  const std::vector<uint32_t> bitmask = {0b011};
  std::vector<float> logits = {1.0f, 2.0f, 9.0f};
  Sampler sampler(3, kernels::KernelsFor(kernels::BestIsa()), /*processed_logprobs=*/true);
  Logprobs out;
  std::string error;
  EXPECT_EQ(sampler.Sample({.logits = logits, .params = &params, .bitmask = bitmask}, &out, error), 1);
  EXPECT_EQ(out.token_ids, (std::vector<int32_t>{1, 1, 0}));
  EXPECT_NEAR(out.logprobs[0], -std::log1p(std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(out.logprobs[2], -1.0 - std::log1p(std::exp(-1.0)), 1e-6);
  out.Clear();
  logits = {1.0f, 2.0f, 9.0f};
  EXPECT_EQ(sampler.Sample({.logits = logits, .params = &params, .forced_token_id = 0}, &out, error), 0);
  EXPECT_EQ(out.token_ids, (std::vector<int32_t>{0, 0, -1}));
  EXPECT_EQ(out.logprobs, (std::vector<float>{0.0f, 0.0f, -kInf}));
}

TEST(SamplerTest, AMaskThatLeavesFewerThanTopKTokensKeepsThemAll) {
  std::vector<float> logits(6400, 1.0f);
  std::vector<uint32_t> bitmask(200, 0);
  bitmask[3] = 1u << 5;
  bitmask[150] = 3;
  SamplingParams params;
  params.top_k = 40;
  Sampler sampler(6400);
  EXPECT_EQ(Support(sampler.Distribution({.logits = logits, .params = &params, .bitmask = bitmask})),
            (std::set<int>{101, 4800, 4801}));
}

TEST(SamplerTest, TopKKeepsTokensTiedWithTheKthLargestLogit) {
  SamplingParams params;
  params.top_k = 2;
  EXPECT_EQ(Support(Probs({5, 1, 3, 3, 0}, params)), (std::set<int>{0, 2, 3}));
}

TEST(SamplerTest, TopKAboveTheVocabularySizeHasNoEffect) {
  SamplingParams params;
  params.top_k = 100;
  EXPECT_EQ(Support(Probs({5, 1, 3}, params)).size(), 3u);
}

TEST(SamplerTest, TopPKeepsAtLeastTheMostProbableToken) {
  SamplingParams params;
  params.top_p = 1e-9;
  EXPECT_EQ(Support(Probs({5, 1, 5.5, 3}, params)), (std::set<int>{2}));
}

TEST(SamplerTest, TopPKeepsTheLargerIdsOfEqualLogits) {
  // Each token has probability 1/4. Equal tokens are dropped in ascending order of id, so ids 0 and 1 are dropped.
  SamplingParams params;
  params.top_p = 0.4;
  EXPECT_EQ(Support(Probs({1, 1, 1, 1}, params)), (std::set<int>{2, 3}));
}

TEST(SamplerTest, TopPIsAppliedToTheTokensThatTopKKeeps) {
  // Among all tokens, token 1 has a probability of about 0.32. Among the two that top-k keeps, it has 0.5.
  std::vector<float> logits = {2, 2.001f, 1, 1, 1};
  SamplingParams params;
  params.top_p = 0.45;
  EXPECT_EQ(Support(Probs(logits, params)), (std::set<int>{0, 1}));
  params.top_k = 2;
  EXPECT_EQ(Support(Probs(logits, params)), (std::set<int>{1}));
}

TEST(SamplerTest, TemperatureComesBeforeMinP) {
  SamplingParams params;
  params.min_p = 0.3;
  EXPECT_EQ(Support(Probs({2, 0.5f, 0}, params)), (std::set<int>{0}));
  params.temperature = 2.0;
  EXPECT_EQ(Support(Probs({2, 0.5f, 0}, params)), (std::set<int>{0, 1, 2}));
}

TEST(SamplerTest, MinPOfOneKeepsOnlyTheMaxima) {
  SamplingParams params;
  params.min_p = 1.0;
  EXPECT_EQ(Support(Probs({2, 2, 1.9999f}, params)), (std::set<int>{0, 1}));
}

TEST(SamplerTest, OnlyTheRepetitionPenaltyAppliesToPromptTokens) {
  SamplingParams params = Greedy();
  params.repetition_penalty = 2.0;
  EXPECT_EQ(Support(Probs({4, 3, -1}, params, {0}, {})), (std::set<int>{1}));
  params.repetition_penalty = 1.0;
  params.presence_penalty = 2.0;
  params.frequency_penalty = 2.0;
  EXPECT_EQ(Support(Probs({4, 3, -1}, params, {0}, {})), (std::set<int>{0}));
  EXPECT_EQ(Support(Probs({4, 3, -1}, params, {}, {0})), (std::set<int>{1}));
}

TEST(SamplerTest, RepetitionPenaltyMultipliesNegativeLogitsOncePerToken) {
  SamplingParams params;
  params.repetition_penalty = 2.0;
  std::vector<double> once = Probs({-1, 0}, params, {0}, {});
  EXPECT_NEAR(once[0] / once[1], std::exp(-2.0), 1e-6);
  EXPECT_EQ(once, Probs({-1, 0}, params, {0, 0}, {0, 0}));
}

TEST(SamplerTest, FrequencyPenaltyIsPerOccurrenceAndPresencePenaltyIsNot) {
  SamplingParams params;
  params.frequency_penalty = 0.5;
  std::vector<double> probs = Probs({0, 0}, params, {}, {0, 0, 0});
  EXPECT_NEAR(probs[0] / probs[1], std::exp(-1.5), 1e-6);
  params.frequency_penalty = 0.0;
  params.presence_penalty = 0.5;
  probs = Probs({0, 0}, params, {}, {0, 0, 0});
  EXPECT_NEAR(probs[0] / probs[1], std::exp(-0.5), 1e-6);
}

TEST(SamplerTest, RepetitionPenaltyComesBeforeFrequencyPenalty) {
  SamplingParams params;
  params.repetition_penalty = 2.0;
  params.frequency_penalty = 1.0;
  std::vector<double> probs = Probs({4, 0}, params, {}, {0});
  EXPECT_NEAR(probs[0] / probs[1], std::exp(4.0 / 2.0 - 1.0), 1e-5);
}

TEST(SamplerTest, LogitBiasComesBeforePenalties) {
  SamplingParams params;
  params.logit_bias = {{0, 2.0f}};
  params.repetition_penalty = 2.0;
  std::vector<double> probs = Probs({-1, 0}, params, {0}, {});
  EXPECT_NEAR(probs[0] / probs[1], std::exp(0.5), 1e-6);
}

TEST(SamplerTest, OnlyAllowedTokensRemain) {
  SamplingParams params;
  params.allowed_token_ids = {3, 1, 1};
  EXPECT_EQ(Support(Probs({9, 1, 9, 0}, params)), (std::set<int>{1, 3}));
}

TEST(SamplerTest, MinTokensMasksEosAndStopIds) {
  SamplingParams params;
  params.min_tokens = 2;
  params.eos_token_id = 0;
  params.stop_token_ids = {2};
  EXPECT_EQ(Support(Probs({9, 1, 9, 0}, params, {}, {1})), (std::set<int>{1, 3}));
  EXPECT_EQ(Support(Probs({9, 1, 9, 0}, params, {0, 0}, {1})), (std::set<int>{1, 3}));
  EXPECT_EQ(Support(Probs({9, 1, 9, 0}, params, {}, {1, 1})).size(), 4u);
}

TEST(SamplerTest, LastTokenOfABadWordIsMaskedIfTheOutputEndsWithTheOthers) {
  SamplingParams params;
  params.bad_words_token_ids = {{1, 2, 3}, {0}};
  EXPECT_EQ(Support(Probs({0, 0, 0, 0}, params, {}, {1, 2})), (std::set<int>{1, 2}));
  EXPECT_EQ(Support(Probs({0, 0, 0, 0}, params, {}, {2, 1})), (std::set<int>{1, 2, 3}));
  EXPECT_EQ(Support(Probs({0, 0, 0, 0}, params, {}, {2})), (std::set<int>{1, 2, 3}));
  EXPECT_EQ(Support(Probs({0, 0, 0, 0}, params, {1, 2}, {})), (std::set<int>{1, 2, 3}));
}

TEST(SamplerTest, NaNOrPositiveInfinityInTheLogitsIsAnError) {
  for (float bad : {std::nanf(""), kInf}) {
    for (size_t index : {size_t{0}, size_t{63}, size_t{64}, size_t{99}}) {
      std::vector<float> logits(100, 1.0f);
      logits[index] = bad;
      for (const SamplingParams& params : {Greedy(), SamplingParams()}) {
        std::string error;
        EXPECT_EQ(SampleOne(logits, params, &error), -1);
        EXPECT_EQ(error, "the model's logits contain NaN or infinity");
      }
    }
  }
}

TEST(SamplerTest, NoRemainingTokenIsAnError) {
  std::string error;
  EXPECT_EQ(SampleOne({-kInf, -kInf}, Greedy(), &error), -1);
  EXPECT_EQ(error, "no token remains to sample: all logits are -inf");
  SamplingParams params;
  params.bad_words_token_ids = {{0}, {1}};
  EXPECT_EQ(SampleOne({1, 2}, params, &error), -1);
  EXPECT_EQ(error, "no token remains to sample: all logits are -inf");
}

TEST(SamplerTest, PenaltiesThatOverflowAreAnError) {
  SamplingParams params;
  params.repetition_penalty = 1e-300;
  std::string error;
  EXPECT_EQ(SampleOne({1, 2}, params, &error, {0}), -1);
  EXPECT_EQ(error, "logit_bias or penalties make a logit NaN or infinite");
}

TEST(SamplerTest, MaskedTokensAreNeverDrawn) {
  std::vector<float> logits(300, -kInf);
  logits[70] = logits[299] = 0.0f;
  for (int64_t top_k : {0, 1, 2, 5, 299}) {
    for (double top_p : {0.3, 0.999999, 1.0}) {
      SamplingParams params;
      params.top_k = top_k;
      params.top_p = top_p;
      for (uint64_t seed = 0; seed < 50; ++seed) {
        params.seed = seed;
        int32_t token = SampleOne(logits, params);
        EXPECT_TRUE(token == 70 || token == 299) << token;
      }
    }
  }
}

TEST(SamplerTest, DrawIsAFunctionOfSeedAndPosition) {
  std::vector<float> logits(500, 0.0f);
  SamplingParams params;
  params.seed = 9;
  EXPECT_EQ(SampleOne(logits, params), SampleOne(logits, params));
  std::set<int32_t> by_position, by_seed;
  for (uint64_t i = 0; i < 20; ++i) {
    by_position.insert(SampleOne(logits, params, nullptr, std::vector<int32_t>(i, 0)));
    SamplingParams other;
    other.seed = i;
    by_seed.insert(SampleOne(logits, other));
  }
  EXPECT_GT(by_position.size(), 15u);
  EXPECT_GT(by_seed.size(), 15u);
}

TEST(SamplerTest, LogprobsComeFromTheLogitsBeforeAnyProcessing) {
  SamplingParams params;
  params.temperature = 2.0;
  params.top_k = 1;
  params.logit_bias = {{0, 50.0f}};
  params.repetition_penalty = 1.5;
  params.logprobs = 2;
  Logprobs logprobs;
  EXPECT_EQ(SampleOne({0, 1, 2, 1}, params, nullptr, {2}, &logprobs), 0);
  double sum = std::log(1 + 2 * std::exp(1) + std::exp(2));
  EXPECT_EQ(logprobs.width, 3u);
  EXPECT_EQ(logprobs.token_ids, (std::vector<int32_t>{0, 2, 1}));
  EXPECT_NEAR(logprobs.logprobs[0], -sum, 1e-6);
  EXPECT_NEAR(logprobs.logprobs[1], 2 - sum, 1e-6);
  EXPECT_NEAR(logprobs.logprobs[2], 1 - sum, 1e-6);
  EXPECT_EQ(logprobs.ranks, (std::vector<int32_t>{4}));
}

TEST(SamplerTest, RankCountsAllTokensWithAtLeastTheSameLogit) {
  Sampler sampler(5);
  std::vector<float> logits = {1, 3, 3, 2, 3};
  Logprobs logprobs;
  for (int32_t token : {0, 1, 2, 3, 4}) sampler.AppendLogprobs(logits, token, 1, logprobs);
  EXPECT_EQ(logprobs.ranks, (std::vector<int32_t>{5, 3, 3, 4, 3}));
  EXPECT_EQ(logprobs.token_ids[1], 1);
}

TEST(SamplerTest, LogprobsHaveTheRequestedWidth) {
  std::vector<float> logits = {1, 3, 2};
  Sampler sampler(3);
  Logprobs none, all, many;
  sampler.AppendLogprobs(logits, 2, 0, none);
  EXPECT_EQ(none.width, 1u);
  EXPECT_EQ(none.token_ids, (std::vector<int32_t>{2}));
  sampler.AppendLogprobs(logits, 2, -1, all);
  EXPECT_EQ(all.token_ids, (std::vector<int32_t>{2, 1, 2, 0}));
  sampler.AppendLogprobs(logits, 2, 20, many);
  EXPECT_EQ(many.token_ids, all.token_ids);
}

TEST(SamplerTest, LogprobsAreAppendedOnlyIfRequestedAndIfSamplingSucceeds) {
  Logprobs logprobs;
  SampleOne({1, 2}, Greedy(), nullptr, {}, &logprobs);
  EXPECT_TRUE(logprobs.empty());
  SamplingParams params = Greedy();
  params.logprobs = 1;
  SampleOne({1, kInf}, params, nullptr, {}, &logprobs);
  EXPECT_TRUE(logprobs.empty());
}

TEST(SamplerTest, LogprobsOfInvalidLogitsAreNaN) {
  Sampler sampler(3);
  Logprobs logprobs;
  sampler.AppendLogprobs(std::vector<float>{1, std::nanf(""), 2}, 2, 2, logprobs);
  sampler.AppendLogprobs(std::vector<float>{-kInf, -kInf, -kInf}, 2, 2, logprobs);
  ASSERT_EQ(logprobs.logprobs.size(), 6u);
  for (float value : logprobs.logprobs) EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(logprobs.num_positions(), 2u);
}

TEST(SamplerTest, MaskedTokensHaveALogprobOfMinusInfinity) {
  Sampler sampler(3);
  Logprobs logprobs;
  sampler.AppendLogprobs(std::vector<float>{0, -kInf, 0}, 1, 3, logprobs);
  EXPECT_EQ(logprobs.logprobs[0], -kInf);
  EXPECT_NEAR(logprobs.logprobs[1], -std::log(2.0f), 1e-6);
  EXPECT_EQ(logprobs.ranks[0], 3);
}

}  // namespace
}  // namespace vllm
