// Parses the header of a safetensors file. A pure function; any thread.
//
// clang-format off
//   file   := length header data
//   length := 8 bytes, little-endian, the size of header; at most 100 000 000
//   header := JSON in UTF-8, begins with '{', may end in spaces:
//             {"__metadata__": {STRING: STRING, ...},
//              NAME: {"dtype": DTYPE, "shape": [N, ...], "data_offsets": [B, E]}, ...}
//   data   := the tensors, row-major, little-endian; the bytes of NAME are data[B, E)
// clang-format on
//
// Sorted by data_offsets, the tensors cover data from 0 to its end without gaps or overlap. E - B is the product of the
// shape and the size of the dtype. This parser is stricter than the reference reader: it rejects repeated keys (except
// unknown fields and keys inside them), whitespace before '{', and tensors or dtypes in serde's alternative forms
// (["F32",[1],[0,4]], {"F32":null}). Each of these is either meaningless or a known way to make two readers see
// different tensors.
//
// Example, 8 + 56 + 4 bytes: 38 00 00 00 00 00 00 00 {"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} 00 00 80 3f
// (with two spaces after the last brace) contains the tensor a = [1.0].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  std::string_view dtype;       // "F32"; has static storage duration
  std::vector<uint64_t> shape;  // as in the file; matches the size of data
  std::span<const std::byte> data;
};

// Returns the tensors of a complete file, sorted by name. Their data borrows `file`. Throws ModelError
// `tensor file <path>: <why>`.
std::vector<SafetensorsEntry> ParseSafetensors(std::span<const std::byte> file, const std::string& path);

}  // namespace vllm
