// ParseGguf: the header of a GGUF file (llama.cpp's format), checked whole before anything is used: what it says of
// counts, sizes, types and places is held against the bytes that are there. Pure function; any thread.
//
//   file    = "GGUF" version:u32 num_tensors:u64 num_pairs:u64 pair* tensor* padding data      little endian throughout
//   version = 2 | 3
//   string  = length:u64 byte*
//   pair    = key:string type:u32 value                        keys differ; types are GgufValueType's numbers
//   value   = number | bool:u8 | string | array                array = type:u32 count:u64 element*
//   tensor  = name:string num_dimensions:u32 dimension:u64* type:u32 offset:u64     the innermost dimension comes
//   first;
//                                                              types are GgmlType's numbers; offset counts within data
//   padding = zero or more bytes up to a multiple of general.alignment (a power of two; 32 where the key is missing)
//   data    = for each tensor in order: its bytes, then padding; so each offset is where the padding before it ends
//
// Example, 24 bytes: `GGUF` 03 00 00 00, then eight zero bytes twice: a file of nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/gguf/metadata.h"

namespace vllm {

struct GgufTensor {
  std::string_view name;
  const GgmlType* type = nullptr;
  std::vector<int64_t> shape;  // the innermost dimension last, as everywhere else here; every one above 0
  std::span<const std::byte> data;

  int64_t num_elements() const;
};

struct GgufHeader {
  uint32_t version = 0;
  uint64_t alignment = 32;
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  // in the file's order; names differ
};

// Views are on `file`. Throws ModelError `gguf file <path>: <object>: <why>`.
GgufHeader ParseGguf(std::span<const std::byte> file, const std::string& path);

}  // namespace vllm
