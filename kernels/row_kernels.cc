#include "kernels/row_kernels.h"

#include <array>
#include <cstring>
#include <limits>

#include "kernels/kernel_tables.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vllm::kernels {
namespace {

// Each pass has one always-inline body, and the function of each instruction set compiles a separate copy of it. Inner
// loops run over independent lanes or add integers, so the compiler can vectorize them.
#define VLLM_INLINE inline __attribute__((always_inline))
constexpr size_t kLanes = 16;

VLLM_INLINE bool BlockMaximaBody(const float* row, size_t num_blocks, float* block_max) {
  std::array<int32_t, kLanes> bad = {};
  for (size_t b = 0; b < num_blocks; ++b, row += kRowBlock) {
    std::array<float, kLanes> best;
    for (size_t l = 0; l < kLanes; ++l) best[l] = row[l];
    for (size_t i = 0; i < kRowBlock; i += kLanes) {
      for (size_t l = 0; l < kLanes; ++l) {
        float x = row[i + l];
        best[l] = x > best[l] ? x : best[l];
        bad[l] |= x <= std::numeric_limits<float>::max() ? 0 : 1;  // NaN and +inf
      }
    }
    for (size_t half = kLanes / 2; half > 0; half /= 2) {
      for (size_t l = 0; l < half; ++l) best[l] = best[l + half] > best[l] ? best[l + half] : best[l];
    }
    block_max[b] = best[0];
  }
  int32_t any = 0;
  for (int32_t flag : bad) any |= flag;
  return any == 0;
}

// GNU vector types: the number of lanes is fixed, and the compiler splits a vector if the registers are narrower.
typedef float Float16Lanes __attribute__((vector_size(64)));
typedef int32_t Int16Lanes __attribute__((vector_size(64)));
typedef float Float8Lanes __attribute__((vector_size(32)));
typedef double Double8Lanes __attribute__((vector_size(64)));

inline void AddLanes(const Float8Lanes& from, Double8Lanes& sum) { sum += __builtin_convertvector(from, Double8Lanes); }
#if defined(__x86_64__)
// AddLanes with one conversion instruction for eight lanes, which g++ 12 does not generate.
__attribute__((target("avx512f"))) inline void AddLanesAvx512(const Float8Lanes& from, Double8Lanes& sum) {
  sum += __builtin_bit_cast(Double8Lanes, _mm512_maskz_cvtps_pd(0xff, __builtin_bit_cast(__m256, from)));
}
#endif

// Executes the same operations as Weight(), in the same order. Adds entry i of a block to lane i % 8.
template <void (*kAdd)(const Float8Lanes&, Double8Lanes&)>
VLLM_INLINE void BlockWeightSumsBody(const float* row, size_t num_blocks, float max, float inverse_temperature,
                                     double* block_sum) {
  for (size_t b = 0; b < num_blocks; ++b, row += kRowBlock) {
    Double8Lanes sum = {};
    for (size_t i = 0; i < kRowBlock; i += kLanes) {
      Float16Lanes x;
      std::memcpy(&x, row + i, sizeof(x));
      Float16Lanes y = (x - max) * inverse_temperature;
      Int16Lanes counts = y > -87.0f;
      Float16Lanes clamped = counts ? y : Float16Lanes{} - 87.0f;
      Float16Lanes n = (clamped * 1.44269504f + 12582912.0f) - 12582912.0f;
      Float16Lanes r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
      Float16Lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
      p = p * r + 8.3334519073e-3f;
      p = p * r + 4.1665795894e-2f;
      p = p * r + 1.6666665459e-1f;
      p = p * r + 5.0000001201e-1f;
      p = (p * (r * r) + r) + 1.0f;
      Int16Lanes scale = (__builtin_convertvector(n, Int16Lanes) + 127) << 23;
      Float16Lanes weight = p * __builtin_bit_cast(Float16Lanes, scale);
      Int16Lanes bits = __builtin_bit_cast(Int16Lanes, weight) & counts;
      Float8Lanes halves[2];
      std::memcpy(halves, &bits, sizeof(halves));
      kAdd(halves[0], sum);
      kAdd(halves[1], sum);
    }
    block_sum[b] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
  }
}

VLLM_INLINE int64_t CountAtLeastBody(const float* row, size_t num_blocks, float value) {
  int64_t total = 0;
  for (size_t b = 0; b < num_blocks; ++b, row += kRowBlock) {
    int32_t count = 0;
    for (size_t i = 0; i < kRowBlock; ++i) count += row[i] >= value ? 1 : 0;
    total += count;
  }
  return total;
}

#define VLLM_ROW_KERNELS(suffix, add, attribute)                                                                      \
  attribute bool BlockMaxima##suffix(const float* row, size_t n, float* out) { return BlockMaximaBody(row, n, out); } \
  attribute void BlockWeightSums##suffix(const float* row, size_t n, float max, float inverse, double* out) {         \
    BlockWeightSumsBody<add>(row, n, max, inverse, out);                                                              \
  }                                                                                                                   \
  attribute int64_t CountAtLeast##suffix(const float* row, size_t n, float value) {                                   \
    return CountAtLeastBody(row, n, value);                                                                           \
  }                                                                                                                   \
  constexpr RowKernels k##suffix = {BlockMaxima##suffix, BlockWeightSums##suffix, CountAtLeast##suffix};

VLLM_ROW_KERNELS(Generic, AddLanes, )
#if defined(__x86_64__)
VLLM_ROW_KERNELS(Avx2, AddLanes, __attribute__((target("avx2"))))
VLLM_ROW_KERNELS(Avx512, AddLanesAvx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))))
#endif

}  // namespace

constinit const RowKernels kGenericRowKernels = kGeneric;
#if defined(__x86_64__)
constinit const RowKernels kAvx2RowKernels = kAvx2;
constinit const RowKernels kAvx512RowKernels = kAvx512;
#endif

}  // namespace vllm::kernels
