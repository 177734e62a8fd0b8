// RandomValues: what fixtures draw at random, the same in every run.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace vllm::testing_support {

class RandomValues {
 public:
  explicit RandomValues(uint32_t seed) : random_(seed) {}

 protected:
  // In [low, high].
  int64_t Int(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  // Normally distributed.
  std::vector<float> Floats(int64_t count, float scale = 1.0f) {
    std::normal_distribution<float> normal(0.0f, scale);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random_);
    return values;
  }

  std::mt19937 random_;
};

}  // namespace vllm::testing_support
