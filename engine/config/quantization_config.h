// QuantizationConfig: how a checkpoint's linear weights are quantized, or how they are to be quantized at load. Written
// once when the model's config is read, then read by anyone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

enum class QuantizationMethod : uint8_t {
  kNone,
  kInt8,  // at load: 8-bit codes with a scale for 32 columns
  kInt4,  // at load: 4-bit codes likewise; embedding and output head as kInt8
  kGptq,
  kAwq,
  kFp8,                // float8 with scales of blocks, rows or whole matrices
  kCompressedTensors,  // pack-quantized, int-quantized or float-quantized, by layer
};

constexpr std::string_view ToString(QuantizationMethod method) {
  switch (method) {
    case QuantizationMethod::kNone:
      return "none";
    case QuantizationMethod::kInt8:
      return "int8";
    case QuantizationMethod::kInt4:
      return "int4";
    case QuantizationMethod::kGptq:
      return "gptq";
    case QuantizationMethod::kAwq:
      return "awq";
    case QuantizationMethod::kFp8:
      return "fp8";
    case QuantizationMethod::kCompressedTensors:
      return "compressed-tensors";
  }
  return "unknown";
}

// How the weights of some layers are stored.
struct QuantizationScheme {
  int64_t bits = 8;         // 4 or 8
  bool is_float = false;    // float8 e4m3
  bool packed = false;      // several codes in an int32
  bool symmetric = true;    // no stored zero points
  int64_t group_size = -1;  // input columns that share a scale; -1: all
  int64_t block_rows = 1;   // output rows that share a scale
};

// Layers by name: in full, by a run of whole dotted parts ("mlp.gate", "lm_head"), or by a regular expression that
// matches from the name's beginning ("re:...").
struct QuantizationTargets {
  bool all = false;
  std::vector<std::string> names;
};

struct QuantizationConfig {
  QuantizationMethod method = QuantizationMethod::kNone;
  // Schemes in order of their mention; the first whose targets hold a layer says how it is stored. One for all methods
  // but compressed-tensors.
  struct Group {
    QuantizationTargets targets;
    QuantizationScheme scheme;
  };
  std::vector<Group> groups;
  QuantizationTargets ignored;  // layers stored as plain numbers
  bool gptq_v2 = false;         // zero points as they are, not one lower

  bool quantizes_at_load() const { return method == QuantizationMethod::kInt8 || method == QuantizationMethod::kInt4; }
};

}  // namespace vllm
