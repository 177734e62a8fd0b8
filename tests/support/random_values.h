// RandomValues: a base class for fixtures that need random values. Without --gtest_shuffle, every run gets the same
// values. With it, each run and each repetition of --gtest_repeat=N gets different ones.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace vllm::testing_support {

class RandomValues {
 public:
  // GoogleTest derives its seed from the time of day, so the seed is used only if the tests are shuffled.
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

  std::mt19937 random_;
};

}  // namespace vllm::testing_support
