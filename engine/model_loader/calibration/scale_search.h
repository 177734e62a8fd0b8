// Chooses the scale of a group of IQ4_NL codes. Pure functions; any thread.
#pragma once

#include <cstdint>

namespace vllm {

// The columns that share a scale.
inline constexpr int64_t kGroupColumns = 32;

// Returns the code of the level of IQ4_NL that is nearest to `value`, which is in units of the scale. Between two
// levels, the higher one is taken. The code of NaN is unspecified.
uint8_t NearestCode(float value);
// Returns the level of a code, -127 to 113.
float LevelOf(uint8_t code);

// Returns the scale s, a value of float16, for which the sum of importance[k] (x[k] - s level[k])^2 is smallest among
// the candidates, where level[k] is the level nearest to x[k] / s. The candidates map the largest magnitude to values
// around the levels of the largest magnitudes, with both signs. REQUIRES: 0 <= count <= kGroupColumns; importance[k] >=
// 0.
float SearchScale(const float* x, const float* importance, int64_t count);

}  // namespace vllm
