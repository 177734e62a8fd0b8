// RandomValues: a base class for fixtures that need random values. Without --gtest_shuffle, every run gets the same
// values. With it, the values depend on GoogleTest's seed, which changes with each repetition of --gtest_repeat=N and,
// unless --gtest_random_seed sets it, with each run.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace vllm::testing_support {

class RandomValues {
 public:
  // Uses GoogleTest's seed only if the tests are shuffled, because GoogleTest derives it from the time of day.
  explicit RandomValues(uint32_t seed)
      : random_(seed + (testing::GTEST_FLAG(shuffle)
                            ? static_cast<uint32_t>(testing::UnitTest::GetInstance()->random_seed())
                            : 0)) {}

 protected:
  // Returns an integer in [low, high].
  int64_t Int(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  // Returns `count` normally distributed values with mean 0 and standard deviation `scale`.
  std::vector<float> Floats(int64_t count, float scale = 1.0f) {
    std::normal_distribution<float> normal(0.0f, scale);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random_);
    return values;
  }
  // Returns `count` token ids below `alphabet`.
  std::vector<int32_t> Tokens(int64_t count, int64_t alphabet) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(Int(0, alphabet - 1)));
    return tokens;
  }

  std::mt19937 random_;
};

}  // namespace vllm::testing_support
