#include "kernels/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/dtype.h"

namespace vllm {

namespace {

constexpr int64_t kBlock = 32;

void StoreHalf(float value, uint8_t* out) {
  const uint16_t bits = FloatToFloat16(value);
  std::memcpy(out, &bits, sizeof(bits));
}

constexpr std::array<float, 16> kLevels = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// The nearest level of x: as many as there are middles below it.
int NearestLevel(float x) {
  int index = 0;
  for (size_t i = 0; i + 1 < kLevels.size(); ++i) index += x > (kLevels[i] + kLevels[i + 1]) * 0.5f ? 1 : 0;
  return index;
}

}  // namespace

void QuantizeQ8_0(const float* x, int64_t count, uint8_t* out) {
  for (int64_t begin = 0; begin < count; begin += kBlock, x += kBlock, out += 2 + kBlock) {
    float largest = 0.0f;
    for (int64_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(x[i]));
    const float d = largest / 127.0f;
    const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    StoreHalf(d, out);
    for (int64_t i = 0; i < kBlock; ++i) {
      out[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(x[i] * inverse)));
    }
  }
}

void QuantizeIQ4_NL(const float* x, int64_t count, uint8_t* out) {
  for (int64_t begin = 0; begin < count; begin += kBlock, x += kBlock, out += 2 + kBlock / 2) {
    float peak = 0.0f;
    for (int64_t i = 0; i < kBlock; ++i) {
      if (std::abs(x[i]) > std::abs(peak)) peak = x[i];
    }
    // For levels q the best scale is sum(x q) / sum(q q); it takes sum(x q)^2 / sum(q q) off the squared error.
    float best = 0.0f, scale = 0.0f;
    for (int step = -7; step <= 7 && peak != 0.0f; ++step) {
      const float inverse = (kLevels[0] + static_cast<float>(step)) / peak;
      float xq = 0.0f, qq = 0.0f;
      for (int64_t i = 0; i < kBlock; ++i) {
        const float q = kLevels[static_cast<size_t>(NearestLevel(x[i] * inverse))];
        xq += x[i] * q;
        qq += q * q;
      }
      if (xq * xq > best * qq) {
        best = xq * xq / qq;
        scale = xq / qq;
      }
    }
    StoreHalf(scale, out);
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    for (int64_t i = 0; i < kBlock / 2; ++i) {
      const int low = NearestLevel(x[i] * inverse), high = NearestLevel(x[i + kBlock / 2] * inverse);
      out[2 + i] = static_cast<uint8_t>(low | (high << 4));
    }
  }
}

}  // namespace vllm
