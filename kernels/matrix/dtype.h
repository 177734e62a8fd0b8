// DType: the floating-point types of weights and their scales, and scalar conversions to and from float32. Pure
// functions; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vllm::kernels {

enum class DType : uint8_t { kFloat32, kFloat16, kBFloat16 };

constexpr size_t SizeOf(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }

constexpr std::string_view ToString(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
  }
  return "unknown";
}

inline float BFloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Rounds to nearest, ties to even. NaN stays NaN.
inline uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  // Rounding could turn a NaN with a small payload into infinity, so NaN keeps its upper half and gets the quiet bit.
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x0040u : rounded >> 16);
}

float Float16ToFloat(uint16_t bits);

// Rounds to nearest, ties to even. Values that are too large become infinity. NaN stays NaN.
uint16_t FloatToFloat16(float value);

}  // namespace vllm::kernels
