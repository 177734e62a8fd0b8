// Transposes blocks of a panel's 16 rows with vectors of 16 bytes, which every supported CPU has. Packing is then bound
// by memory bandwidth, so it does not need a version per instruction set. Pure functions; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vllm::kernels {

namespace panel_transpose {

using Words = uint32_t __attribute__((vector_size(16)));
using Halves = uint16_t __attribute__((vector_size(16)));

inline Words Load(const std::byte* from) {
  Words words;
  std::memcpy(&words, from, sizeof(words));
  return words;
}

// Transposes words 0 to 3 of four rows, starting at byte `offset` of each: result[i] is word i of the four rows.
inline std::array<Words, 4> Columns(const std::byte* const* rows, int64_t offset) {
  const Words a = Load(rows[0] + offset);
  const Words b = Load(rows[1] + offset);
  const Words c = Load(rows[2] + offset);
  const Words d = Load(rows[3] + offset);
  const Words ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Words ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Words cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Words cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
          __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
}

}  // namespace panel_transpose

// The start of each of a panel's 16 rows; may be unaligned.
using PanelRows = std::array<const std::byte*, 16>;

// out[k * 16 + n] = word k of row n, for k < num_words. REQUIRES: num_words is a multiple of 4.
inline void TransposeWords(const PanelRows& rows, int64_t num_words, uint32_t* out) {
  for (int64_t k = 0; k < num_words; k += 4) {
    for (int64_t n = 0; n < 16; n += 4) {
      const auto columns = panel_transpose::Columns(rows.data() + n, 4 * k);
      for (size_t i = 0; i < 4; ++i) {
        std::memcpy(out + (k + static_cast<int64_t>(i)) * 16 + n, &columns[i], sizeof(columns[i]));
      }
    }
  }
}

// Like TransposeWords, for 16-bit elements: out[k * 16 + n] = half k of row n, for k < num_halves.
// REQUIRES: num_halves is a multiple of 8.
inline void TransposeHalves(const PanelRows& rows, int64_t num_halves, uint16_t* out) {
  using panel_transpose::Halves;
  for (int64_t k = 0; k < num_halves; k += 8) {
    for (int64_t n = 0; n < 16; n += 8) {
      const auto low = panel_transpose::Columns(rows.data() + n, 2 * k);
      const auto high = panel_transpose::Columns(rows.data() + n + 4, 2 * k);
      for (size_t i = 0; i < 4; ++i) {
        Halves a, b;
        std::memcpy(&a, &low[i], sizeof(a));
        std::memcpy(&b, &high[i], sizeof(b));
        const Halves even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
        const Halves odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
        uint16_t* to = out + (k + 2 * static_cast<int64_t>(i)) * 16 + n;
        std::memcpy(to, &even, sizeof(even));
        std::memcpy(to + 16, &odd, sizeof(odd));
      }
    }
  }
}

}  // namespace vllm::kernels
