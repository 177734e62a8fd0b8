// ParseGguf: parses the header of a GGUF file (llama.cpp's format). It checks every count, size, type and offset before
// it returns anything. A pure function; any thread.
//
// clang-format off
//   file    = "GGUF" version:u32 num_tensors:u64 num_pairs:u64 pair* tensor* padding data      all little-endian
//   version = 2 | 3
//   string  = length:u64 byte*
//   pair    = key:string type:u32 value                        keys are unique; types are GgufValueType's numbers
//   value   = number | bool:u8 | string | array                array = type:u32 count:u64 element*
//   tensor  = name:string num_dimensions:u32 dimension:u64* type:u32 offset:u64
//             the innermost dimension is first; types are GgmlType's ids; offset is relative to data
//   padding = zero or more bytes up to a multiple of general.alignment (a power of two; 32 if the key is missing)
//   data    = the bytes of each tensor in order, each followed by padding
// clang-format on
//
// The first tensor's offset must be 0, and the offset of every other tensor must be the end of the padding after the
// previous one. A file may end without padding.
// Example: `GGUF` 03 00 00 00 and 16 zero bytes, 24 bytes in total, are a file without keys or tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/gguf/format/metadata.h"

namespace vllm {

struct GgufTensor {
  std::string_view name;
  const GgmlType* type = nullptr;
  std::vector<int64_t> shape;  // innermost dimension last, unlike in the file; all above 0
  std::span<const std::byte> data;

  int64_t num_elements() const;
};

struct GgufHeader {
  uint32_t version = 0;
  uint64_t alignment = 32;
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  // in file order; names are unique
};

// Returns the parsed header, which borrows `file`. Throws ModelError `gguf file <path>: <object>: <why>`.
GgufHeader ParseGguf(std::span<const std::byte> file, const std::string& path);

}  // namespace vllm
