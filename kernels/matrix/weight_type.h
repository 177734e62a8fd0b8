// WeightType: the element type of a checkpoint tensor. It is a scalar type or a GGML block type, in which the
// elements of a block share scales. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/matrix/dtype.h"

namespace vllm::kernels {

enum class WeightType : uint8_t {
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt8,
  kUInt8,
  kInt32,
  kInt64,
  kFloat8E4M3,  // OCP e4m3fn: no infinity
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,  // OCP e2m1 codes with one e8m0 scale per 32 elements
  kIQ1_S,
  kIQ1_M,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kTQ1_0,
  kTQ2_0,
  kNVFP4,  // e2m1 codes with one e4m3 scale per 16 elements
};

inline constexpr WeightType kLastWeightType = WeightType::kNVFP4;

struct WeightTypeInfo {
  std::string_view name;       // "BF16", "Q4_K"
  int64_t block_elements = 1;  // elements per block; the elements of a block are consecutive in a row
  int64_t block_bytes = 0;
};

constexpr WeightTypeInfo InfoOf(WeightType type) {
  switch (type) {
    case WeightType::kFloat32:
      return {"F32", 1, 4};
    case WeightType::kFloat16:
      return {"F16", 1, 2};
    case WeightType::kBFloat16:
      return {"BF16", 1, 2};
    case WeightType::kInt8:
      return {"I8", 1, 1};
    case WeightType::kUInt8:
      return {"U8", 1, 1};
    case WeightType::kInt32:
      return {"I32", 1, 4};
    case WeightType::kInt64:
      return {"I64", 1, 8};
    case WeightType::kFloat8E4M3:
      return {"F8_E4M3", 1, 1};
    case WeightType::kQ8_0:
      return {"Q8_0", 32, 34};
    case WeightType::kQ4_0:
      return {"Q4_0", 32, 18};
    case WeightType::kQ4_1:
      return {"Q4_1", 32, 20};
    case WeightType::kQ5_0:
      return {"Q5_0", 32, 22};
    case WeightType::kQ5_1:
      return {"Q5_1", 32, 24};
    case WeightType::kQ2_K:
      return {"Q2_K", 256, 84};
    case WeightType::kQ3_K:
      return {"Q3_K", 256, 110};
    case WeightType::kQ4_K:
      return {"Q4_K", 256, 144};
    case WeightType::kQ5_K:
      return {"Q5_K", 256, 176};
    case WeightType::kQ6_K:
      return {"Q6_K", 256, 210};
    case WeightType::kIQ4_NL:
      return {"IQ4_NL", 32, 18};
    case WeightType::kIQ4_XS:
      return {"IQ4_XS", 256, 136};
    case WeightType::kMXFP4:
      return {"MXFP4", 32, 17};
    case WeightType::kIQ1_S:
      return {"IQ1_S", 256, 50};
    case WeightType::kIQ1_M:
      return {"IQ1_M", 256, 56};
    case WeightType::kIQ2_XXS:
      return {"IQ2_XXS", 256, 66};
    case WeightType::kIQ2_XS:
      return {"IQ2_XS", 256, 74};
    case WeightType::kIQ2_S:
      return {"IQ2_S", 256, 82};
    case WeightType::kIQ3_XXS:
      return {"IQ3_XXS", 256, 98};
    case WeightType::kIQ3_S:
      return {"IQ3_S", 256, 110};
    case WeightType::kTQ1_0:
      return {"TQ1_0", 256, 54};
    case WeightType::kTQ2_0:
      return {"TQ2_0", 256, 66};
    case WeightType::kNVFP4:
      return {"NVFP4", 64, 36};
  }
  return {"unknown", 1, 1};
}

// Returns the size in bytes of `elements` consecutive elements. REQUIRES: `elements` is a multiple of the block size.
constexpr int64_t BytesOf(WeightType type, int64_t elements) {
  const WeightTypeInfo info = InfoOf(type);
  return elements / info.block_elements * info.block_bytes;
}

constexpr WeightType ToWeightType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return WeightType::kFloat32;
    case DType::kFloat16:
      return WeightType::kFloat16;
    case DType::kBFloat16:
      return WeightType::kBFloat16;
  }
  return WeightType::kFloat32;
}

// Returns the DType of F32, F16 and BF16, and nothing for integers, float8 and GGML blocks.
constexpr std::optional<DType> ToDType(WeightType type) {
  if (type == WeightType::kFloat32) return DType::kFloat32;
  if (type == WeightType::kFloat16) return DType::kFloat16;
  if (type == WeightType::kBFloat16) return DType::kBFloat16;
  return std::nullopt;
}

}  // namespace vllm::kernels
