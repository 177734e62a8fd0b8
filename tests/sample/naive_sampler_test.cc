// Compares the sampler's distributions with NaiveDistribution, and the sampler's draws with its distributions.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/sample/random.h"
#include "engine/sample/sampler.h"
#include "tests/sample/naive_sampler.h"

namespace vllm {
namespace {

struct Case {
  std::vector<float> logits;
  SamplingParams params;
  std::vector<int32_t> prompt, output;
};

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Case Next() {
    Case c;
    size_t size = Pick<size_t>({1, 2, 63, 64, 65, 128, 200, 700, 1500});
    float spread = Pick<float>({0.1f, 1.0f, 3.0f, 8.0f, 60.0f});
    std::normal_distribution<float> normal(0.0f, spread);
    bool coarse = Chance(0.3);  // many ties
    for (size_t i = 0; i < size; ++i) {
      float x = normal(random_);
      c.logits.push_back(coarse ? std::round(x * 2.0f) / 2.0f : x);
      if (Chance(0.02)) c.logits.back() = -std::numeric_limits<float>::infinity();
    }
    auto id = [&] { return static_cast<int32_t>(random_() % size); };
    for (uint32_t i = random_() % 20; i > 0; --i) c.prompt.push_back(id());
    for (uint32_t i = random_() % 20; i > 0; --i) c.output.push_back(id());
    SamplingParams& p = c.params;
    p.temperature = Pick<double>({0.0, 0.01, 0.3, 0.7, 1.0, 1.0, 1.5, 2.0});
    if (Chance(0.4)) p.top_k = Pick<int64_t>({1, 2, 10, 40, 64, 300, 5000});
    if (Chance(0.4)) p.top_p = Pick<double>({1e-9, 0.1, 0.5, 0.9, 0.95, 0.999, 1.0 - 1e-12});
    if (Chance(0.3)) p.min_p = Pick<double>({1e-6, 0.01, 0.2, 0.9});
    if (Chance(0.3)) p.repetition_penalty = Pick<double>({0.5, 1.1, 2.0});
    if (Chance(0.3)) p.frequency_penalty = Pick<double>({-2.0, 0.5, 2.0});
    if (Chance(0.3)) p.presence_penalty = Pick<double>({-1.0, 0.5, 2.0});
    if (Chance(0.2)) p.min_tokens = 10;
    if (Chance(0.5)) p.eos_token_id = id();
    if (Chance(0.2)) p.stop_token_ids = {id(), id()};
    if (Chance(0.2)) p.logit_bias = {{id(), 5.0f}};
    if (Chance(0.2)) p.allowed_token_ids = {id(), id(), id(), id(), id()};
    if (Chance(0.2)) p.bad_words_token_ids = {{id()}, {id(), id()}};
    if (Chance(0.2) && !c.output.empty()) p.bad_words_token_ids.push_back({c.output.back(), id()});
    return c;
  }

 private:
  bool Chance(double p) { return std::uniform_real_distribution<double>(0.0, 1.0)(random_) < p; }
  template <typename T>
  T Pick(std::vector<T> choices) {
    return choices[random_() % choices.size()];
  }

  std::mt19937 random_;
};

TEST(NaiveSamplerTest, DistributionsOfRandomRowsMatchTheNaiveOnes) {
  Generator generator(11);
  int different = 0;
  for (int i = 0; i < 10000; ++i) {
    Case c = generator.Next();
    std::vector<double> expected = NaiveDistribution(c.logits, c.params, c.prompt, c.output);
    Sampler sampler(static_cast<int64_t>(c.logits.size()));
    std::vector<double> got = sampler.Distribution({c.logits, &c.params, c.prompt, c.output});
    double distance = 0.0;
    for (size_t j = 0; j < got.size(); ++j) distance = std::max(distance, std::abs(got[j] - expected[j]));
    // If a cumulative probability equals the limit of top_p within rounding, the two samplers may differ by one token.
    if (distance > 1e-5) ++different;
  }
  EXPECT_LE(different, 10);
}

TEST(NaiveSamplerTest, ReusedSamplerGivesTheSameResultsAsAFreshOne) {
  constexpr int64_t kVocab = 1500;
  Sampler reused(kVocab);
  Generator generator(12);
  int compared = 0;
  for (int i = 0; i < 3000; ++i) {
    Case c = generator.Next();
    if (c.logits.size() != kVocab) continue;
    c.params.logprobs = 3;
    c.params.seed = static_cast<uint64_t>(i);
    Sampler fresh(kVocab);
    std::vector<float> copy = c.logits;
    Logprobs a, b;
    std::string error_a, error_b;
    int32_t token_a = reused.Sample({c.logits, &c.params, c.prompt, c.output}, &a, error_a);
    int32_t token_b = fresh.Sample({copy, &c.params, c.prompt, c.output}, &b, error_b);
    EXPECT_EQ(token_a, token_b);
    EXPECT_EQ(error_a, error_b);
    EXPECT_EQ(a.token_ids, b.token_ids);
    EXPECT_EQ(a.logprobs, b.logprobs);
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

// Compares draws at many positions with the distribution in a chi-square test. The limit is a little more than 5
// standard deviations above the mean.
void ExpectDrawsFollowDistribution(const std::vector<float>& logits, const SamplingParams& params) {
  constexpr size_t kDraws = 100000;
  Sampler sampler(static_cast<int64_t>(logits.size()));
  std::vector<float> row = logits;
  std::vector<double> probs = sampler.Distribution({row, &params, {}, {}});
  std::vector<size_t> counts(logits.size(), 0);
  std::vector<int32_t> prompt(kDraws, 0);
  std::string error;
  for (size_t position = 0; position < kDraws; ++position) {
    row = logits;
    ++counts[static_cast<size_t>(
        sampler.Sample({row, &params, std::span(prompt).first(position), {}}, nullptr, error))];
  }
  double chi_square = 0.0;
  double degrees = -1.0;
  for (size_t i = 0; i < probs.size(); ++i) {
    if (probs[i] == 0.0) {
      EXPECT_EQ(counts[i], 0u);
      continue;
    }
    double expected = probs[i] * kDraws;
    double deviation = static_cast<double>(counts[i]) - expected;
    chi_square += deviation * deviation / expected;
    degrees += 1.0;
  }
  EXPECT_LE(chi_square, degrees + 5.0 * std::sqrt(2.0 * degrees) + 1.0);
}

TEST(NaiveSamplerTest, DrawsFollowTheDistribution) {
  std::vector<float> tiny = {0.0f, 1.0f, -1.0f, 0.5f, 0.5f, -2.0f, 1.5f, 0.2f};
  SamplingParams params;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{42}, ~uint64_t{1}}) {
    params.seed = seed;
    ExpectDrawsFollowDistribution(tiny, params);
  }
  params.top_p = 0.8;
  ExpectDrawsFollowDistribution(tiny, params);
  params.top_k = 3;
  params.temperature = 2.0;
  ExpectDrawsFollowDistribution(tiny, params);
  std::vector<float> blocks(150, 0.0f);  // three blocks, the last one partial
  ExpectDrawsFollowDistribution(blocks, SamplingParams());
}

TEST(NaiveSamplerTest, DrawsOfAdjacentSeedsAndPositionsAreUncorrelated) {
  // Counts pairs of one-bit draws for adjacent seeds (s, s + 1) and for adjacent positions (p, p + 1).
  int counts[4] = {}, steps[4] = {};
  constexpr int kPairs = 40000;
  for (uint64_t i = 0; i < kPairs; ++i) {
    int a = UniformAt(i, 7) < 0.5, b = UniformAt(i + 1, 7) < 0.5;
    int c = UniformAt(3, i) < 0.5, d = UniformAt(3, i + 1) < 0.5;
    ++counts[2 * a + b];
    ++steps[2 * c + d];
  }
  for (int k = 0; k < 4; ++k) {
    EXPECT_NEAR(counts[k], kPairs / 4, 500);
    EXPECT_NEAR(steps[k], kPairs / 4, 500);
  }
}

}  // namespace
}  // namespace vllm
