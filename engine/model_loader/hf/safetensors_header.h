// Reads the header of a safetensors file. A pure function; any thread.
//
//   file   := length header data
//   length := 8 bytes, little endian, the size of header; at most 100 000 000
//   header := JSON in UTF-8, begins with '{', may end in spaces:
//             {"__metadata__": {STRING: STRING, ...}, NAME: {"dtype": DTYPE, "shape": [N, ...], "data_offsets": [B,
//             E]}, ...}
//   data   := the tensors, row-major, little endian; NAME's bytes are data[B, E)
//
// Sorted by data_offsets the tensors cover data from 0 to its end without hole or overlap, and E - B is the product of
// shape and the dtype's size. Stricter than the reference reader in four points, each a known way to make two readers
// see different tensors or pure nonsense: repeated keys, white space before '{', and tensors or dtypes spelled as
// serde's alternative forms (["F32",[1],[0,4]], {"F32":null}) are refused.
//
// Example, 8 + 56 + 4 bytes: 38 00 00 00 00 00 00 00 {"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} 00 00 80 3f
// (with three spaces after the last brace) holds the tensor a = [1.0].
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
  std::string_view dtype;       // "F32"; a name of static storage
  std::vector<uint64_t> shape;  // as written; the product with the dtype's size is checked
  std::span<const std::byte> data;
};

// The tensors of a whole file, in the order of their names. Throws ModelError `tensor file <path>: ...`.
std::vector<SafetensorsEntry> ParseSafetensors(std::span<const std::byte> file, const std::string& path);

}  // namespace vllm
