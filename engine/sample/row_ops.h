// Operations on one row of logits that read the whole vocabulary, in blocks of kRowBlock. The last block may be
// partial. The results do not depend on the kernels' instruction set. Pure functions; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/row_kernels.h"

namespace vllm {

constexpr size_t NumRowBlocks(size_t row_size) { return (row_size + kernels::kRowBlock - 1) / kernels::kRowBlock; }

// Sets block_max[b] to the maximum of block b, for NumRowBlocks(row.size()) blocks. Returns false if the row contains
// NaN or +inf; the maxima are then unspecified.
bool BlockMaxima(const kernels::RowKernels& kernels, std::span<const float> row, std::span<float> block_max);

// Returns exp((x - max) * inverse_temperature) with a relative error of at most 2e-7, not counting the rounding of the
// exponent. Returns 0 if the exponent is -87 or less, and exactly 1 if x == max. REQUIRES: x <= max; max is finite.
inline float Weight(float x, float max, float inverse_temperature) {
  float y = (x - max) * inverse_temperature;
  float clamped = y > -87.0f ? y : -87.0f;
  // exp(y) = 2^n * exp(r), |r| <= ln(2) / 2. Adding and subtracting 1.5 * 2^23 rounds to an integer.
  float n = (clamped * 1.44269504f + 12582912.0f) - 12582912.0f;
  float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;  // coefficients from Cephes' expf
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * (r * r) + r) + 1.0f;
  float scale = std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
  return y > -87.0f ? p * scale : 0.0f;
}

// Sets block_sum[b] to the sum of Weight() over block b.
void BlockWeightSums(const kernels::RowKernels& kernels, std::span<const float> row, float max,
                     float inverse_temperature, std::span<double> block_sum);

// Returns the number of logits in `row` that are >= value.
int64_t CountAtLeast(const kernels::RowKernels& kernels, std::span<const float> row, float value);

}  // namespace vllm
