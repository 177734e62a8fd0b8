#include "engine/model_loader/calibration/scale_search.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/matrix/dtype.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm {

namespace {

constexpr int kNumCodes = 16;
constexpr int kZero = 128;

// All midpoints of adjacent levels are multiples of 1/2, so floor(2 value) decides which level is nearest.
constexpr int kTableOffset = 256;
constexpr std::array<uint8_t, 2 * kTableOffset> kNearest = [] {
  std::array<uint8_t, 2 * kTableOffset> table{};
  for (int i = 0; i < 2 * kTableOffset; ++i) {
    const int twice = i - kTableOffset;
    uint8_t code = 0;
    while (code + 1 < kNumCodes &&
           twice >= kernels::kIQ4_NLLevels[code] + kernels::kIQ4_NLLevels[code + 1] - 2 * kZero) {
      ++code;
    }
    table[static_cast<size_t>(i)] = code;
  }
  return table;
}();

// The values that candidates map the largest magnitude to. They contain those of the kernels' quantize_iq4_nl. Beyond
// the largest level, outliers are clipped, which is best if they matter little. A wider or finer range gained nothing.
constexpr float kFirstTarget = 113, kLastTarget = 141, kTargetStep = 2;

}  // namespace

uint8_t NearestCode(float value) {
  const float low = value > -127.5f ? value : -127.5f;
  const float limited = low < 127.5f ? low : 127.5f;
  return kNearest[static_cast<size_t>(static_cast<int>(std::floor(2.0f * limited)) + kTableOffset)];
}

float LevelOf(uint8_t code) { return static_cast<float>(kernels::kIQ4_NLLevels[code] - kZero); }

float SearchScale(const float* x, const float* importance, int64_t count) {
  float largest = 0.0f;
  for (int64_t k = 0; k < count; ++k) largest = std::max(largest, std::abs(x[k]));
  if (!(largest > 0.0f) || !std::isfinite(largest)) return 0.0f;
  float best = 0.0f, scale = 0.0f;
  // For given levels q, the scale sum(w x q) / sum(w q q) is the best one. It reduces the error from sum(w x x) by
  // sum(w x q)^2 / sum(w q q).
  for (float target = kFirstTarget; target <= kLastTarget; target += kTargetStep) {
    for (const float sign : {-1.0f, 1.0f}) {
      const float inverse = sign * target / largest;
      float xq = 0.0f, qq = 0.0f;
      for (int64_t k = 0; k < count; ++k) {
        const float level = LevelOf(NearestCode(x[k] * inverse));
        const float weighted = importance[k] * level;
        xq += weighted * x[k];
        qq += weighted * level;
      }
      if (xq * xq > best * qq) {
        best = xq * xq / qq;
        scale = xq / qq;
      }
    }
  }
  return kernels::Float16ToFloat(kernels::FloatToFloat16(scale));
}

}  // namespace vllm
