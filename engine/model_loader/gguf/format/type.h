// The type codes of GGUF metadata values and tensors. Constants and pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/matrix/weight_type.h"

namespace vllm {

enum class GgufValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// Returns the size of a value in bytes, or 0 for strings, arrays and unknown types.
uint64_t SizeOf(GgufValueType type);
std::string_view NameOf(GgufValueType type);  // "uint32"

// A ggml tensor type. A row is a sequence of blocks, each with block_elements consecutive elements.
struct GgmlType {
  uint32_t id = 0;
  std::string_view name;  // "Q4_K"
  uint64_t block_elements = 1;
  uint64_t block_bytes = 1;
  std::optional<kernels::WeightType> weight_type;  // nullopt: only the size is known; the type is not supported
};

// Returns null if there is no such type.
const GgmlType* FindGgmlType(uint32_t id);

}  // namespace vllm
