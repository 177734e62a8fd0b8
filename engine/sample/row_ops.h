// Passes over one row of logits that read the whole vocabulary, in blocks of kRowBlock; a partial block at the end is
// allowed. Results do not depend on the instruction set of the kernels. Pure functions; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/row_kernels.h"

namespace vllm {

constexpr size_t NumRowBlocks(size_t row_size) { return (row_size + kRowBlock - 1) / kRowBlock; }

// block_max[b] = the largest of block b. Returns false when the row holds NaN or +inf.
bool BlockMaxima(const RowKernels& kernels, std::span<const float> row, std::span<float> block_max);

// exp((x - max) * inverse_temperature) to a relative error of 2e-7 before rounding of the argument; 0 where that is
// below e^-87; exactly 1 at x == max. REQUIRES: x <= max, max finite.
inline float Weight(float x, float max, float inverse_temperature) {
  float y = (x - max) * inverse_temperature;
  float clamped = y > -87.0f ? y : -87.0f;
  // exp(y) = 2^n * exp(r), |r| <= ln(2) / 2; adding and taking away 1.5 * 2^23 rounds to a whole number.
  float n = (clamped * 1.44269504f + 12582912.0f) - 12582912.0f;
  float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;  // the coefficients are those of Cephes' expf
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * (r * r) + r) + 1.0f;
  float scale = std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
  return y > -87.0f ? p * scale : 0.0f;
}

// block_sum[b] = the sum of block b's weights.
void BlockWeightSums(const RowKernels& kernels, std::span<const float> row, float max, float inverse_temperature,
                     std::span<double> block_sum);

// How many entries are >= value.
int64_t CountAtLeast(const RowKernels& kernels, std::span<const float> row, float value);

}  // namespace vllm
