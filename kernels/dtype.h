// Element types of weights, activations and KV cache, and exact scalar conversions to and from float32.
// Pure values; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vllm {

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

// Round to nearest, ties to even. NaN stays NaN.
uint16_t FloatToBFloat16(float value);

float Float16ToFloat(uint16_t bits);

// Round to nearest, ties to even; overflow gives infinity.
uint16_t FloatToFloat16(float value);

}  // namespace vllm
