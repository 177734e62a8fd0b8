// QuantizationConfig: how a checkpoint's linear weights are quantized, or how to quantize them at load. Written when
// the model's config and --quantization are read, then read-only; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

enum class QuantizationMethod : uint8_t {
  kNone,
  kInt8,  // quantized at load: 8-bit codes, one scale per 128 columns
  kInt4,  // quantized at load: 4-bit codes, one scale per 32 columns; embedding and output head as in kInt8
  kGptq,
  kAwq,
  kFp8,                // float8 with one scale per block, row or matrix
  kMxfp4,              // gpt-oss: the experts are in MXFP4, all other layers in floating point
  kCompressedTensors,  // int, float8 or float4 codes; the format may differ between layers
  kModelOpt,           // NVIDIA's Model Optimizer: NVFP4
  kBitsAndBytes,       // NF4, FP4 or LLM.int8
  kHqq,
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
    case QuantizationMethod::kMxfp4:
      return "mxfp4";
    case QuantizationMethod::kCompressedTensors:
      return "compressed-tensors";
    case QuantizationMethod::kModelOpt:
      return "modelopt";
    case QuantizationMethod::kBitsAndBytes:
      return "bitsandbytes";
    case QuantizationMethod::kHqq:
      return "hqq";
  }
  return "unknown";
}

// Formats with E2M1 codes, which differ in their scales.
enum class Float4Format : uint8_t {
  kNone,
  kNvfp4,  // an E4M3 scale per 16 columns and a float32 scale per matrix
  kMxfp4,  // a power of two per 32 columns
};

// The storage format of the weights of some layers.
struct QuantizationScheme {
  int64_t bits = 8;       // 2, 3, 4 or 8
  bool is_float = false;  // float8 e4m3
  Float4Format float4 = Float4Format::kNone;
  bool packed = false;               // several codes per int32 (per byte if float4 is not kNone)
  bool symmetric = true;             // no stored zero points
  int64_t group_size = -1;           // input columns that share a scale; -1: all
  int64_t block_rows = 1;            // output rows that share a scale
  bool has_scale_per_token = false;  // inputs are rounded to int8, with one scale per token
};

// Layers selected by name. Each of `names` is a full layer name, consecutive dot-separated components of a layer name
// ("mlp.gate", "lm_head"), or a regular expression that matches at the beginning of the layer name ("re:...").
struct QuantizationTargets {
  bool all = false;  // selects every layer
  std::vector<std::string> names;
};

struct QuantizationConfig {
  QuantizationMethod method = QuantizationMethod::kNone;
  // A layer uses the first group whose targets include it. Only compressed-tensors can have more than one group. Its
  // groups are in the alphabetical order of their names in the config.
  struct Group {
    QuantizationTargets targets;
    QuantizationScheme scheme;
  };
  std::vector<Group> groups;
  QuantizationTargets ignored;  // layers with floating-point weights
  bool gptq_v2 = false;         // zero points are stored unchanged; GPTQ v1 stores them minus 1

  bool quantizes_at_load() const { return method == QuantizationMethod::kInt8 || method == QuantizationMethod::kInt4; }
};

}  // namespace vllm
