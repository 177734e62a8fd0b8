#include "engine/model_loader/gguf/format/type.h"

#include <algorithm>
#include <array>

namespace vllm {
namespace {

constexpr GgmlType Supported(uint32_t id, kernels::WeightType type) {
  const kernels::WeightTypeInfo info = InfoOf(type);
  return {id, info.name, static_cast<uint64_t>(info.block_elements), static_cast<uint64_t>(info.block_bytes), type};
}

constexpr GgmlType SizeOnly(uint32_t id, std::string_view name, uint64_t block_elements, uint64_t block_bytes) {
  return {id, name, block_elements, block_bytes, std::nullopt};
}

constexpr std::array<GgmlType, 34> kTypes = {{
    Supported(0, kernels::WeightType::kFloat32),
    Supported(1, kernels::WeightType::kFloat16),
    Supported(2, kernels::WeightType::kQ4_0),
    Supported(3, kernels::WeightType::kQ4_1),
    Supported(6, kernels::WeightType::kQ5_0),
    Supported(7, kernels::WeightType::kQ5_1),
    Supported(8, kernels::WeightType::kQ8_0),
    SizeOnly(9, "Q8_1", 32, 40),
    Supported(10, kernels::WeightType::kQ2_K),
    Supported(11, kernels::WeightType::kQ3_K),
    Supported(12, kernels::WeightType::kQ4_K),
    Supported(13, kernels::WeightType::kQ5_K),
    Supported(14, kernels::WeightType::kQ6_K),
    SizeOnly(15, "Q8_K", 256, 292),
    Supported(16, kernels::WeightType::kIQ2_XXS),
    Supported(17, kernels::WeightType::kIQ2_XS),
    Supported(18, kernels::WeightType::kIQ3_XXS),
    Supported(19, kernels::WeightType::kIQ1_S),
    Supported(20, kernels::WeightType::kIQ4_NL),
    Supported(21, kernels::WeightType::kIQ3_S),
    Supported(22, kernels::WeightType::kIQ2_S),
    Supported(23, kernels::WeightType::kIQ4_XS),
    SizeOnly(24, "I8", 1, 1),
    SizeOnly(25, "I16", 1, 2),
    SizeOnly(26, "I32", 1, 4),
    SizeOnly(27, "I64", 1, 8),
    SizeOnly(28, "F64", 1, 8),
    Supported(29, kernels::WeightType::kIQ1_M),
    Supported(30, kernels::WeightType::kBFloat16),
    Supported(34, kernels::WeightType::kTQ1_0),
    Supported(35, kernels::WeightType::kTQ2_0),
    Supported(39, kernels::WeightType::kMXFP4),
    Supported(40, kernels::WeightType::kNVFP4),
    SizeOnly(41, "Q1_0", 128, 18),
}};

}  // namespace

uint64_t SizeOf(GgufValueType type) {
  switch (type) {
    case GgufValueType::kUint8:
    case GgufValueType::kInt8:
    case GgufValueType::kBool:
      return 1;
    case GgufValueType::kUint16:
    case GgufValueType::kInt16:
      return 2;
    case GgufValueType::kUint32:
    case GgufValueType::kInt32:
    case GgufValueType::kFloat32:
      return 4;
    case GgufValueType::kUint64:
    case GgufValueType::kInt64:
    case GgufValueType::kFloat64:
      return 8;
    case GgufValueType::kString:
    case GgufValueType::kArray:
      break;
  }
  return 0;
}

std::string_view NameOf(GgufValueType type) {
  constexpr std::array<std::string_view, 13> kNames = {"uint8",  "int8",    "uint16", "int16",  "uint32",
                                                       "int32",  "float32", "bool",   "string", "array",
                                                       "uint64", "int64",   "float64"};
  const auto index = static_cast<size_t>(type);
  return index < kNames.size() ? kNames[index] : "unknown";
}

const GgmlType* FindGgmlType(uint32_t id) {
  const auto it = std::find_if(kTypes.begin(), kTypes.end(), [&](const GgmlType& type) { return type.id == id; });
  return it != kTypes.end() && !it->name.empty() ? &*it : nullptr;
}

}  // namespace vllm
