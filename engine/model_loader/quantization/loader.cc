#include "engine/model_loader/quantization/loader.h"

#include <algorithm>
#include <array>

#include "engine/model_loader/quantization/bitsandbytes.h"
#include "engine/model_loader/quantization/compressed_tensors_fp8.h"
#include "engine/model_loader/quantization/float4.h"
#include "engine/model_loader/quantization/gptq_awq.h"
#include "engine/model_loader/quantization/hqq.h"
#include "engine/model_loader/quantization/targets.h"

namespace vllm {
namespace {

// Returns true if tensor `name` is the layer's matrix in floating point.
bool IsFloat(const WeightSource& weights, const std::string& name, const MatrixRows& rows) {
  const std::vector<int64_t> shape = {rows.out_features, rows.in_features};
  return weights.ShapeOf(name) == shape && kernels::ToDType(weights.Get(name, shape).type).has_value();
}

// Some checkpoints store layers such as expert gates and output heads in floating point without listing them as
// ignored. So a layer counts as quantized only if its codes exist.
bool HasCodes(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name,
              const MatrixRows& rows) {
  if (scheme.packed) return weights.ShapeOf(name + ".weight_packed").has_value();
  if (!weights.ShapeOf(name + ".weight")) return false;
  return !kernels::ToDType(weights.Get(name + ".weight", std::array{rows.out_features, rows.in_features}).type);
}

}  // namespace

std::optional<CheckpointMatrix> LoadQuantized(const WeightSource& weights, const ModelConfig& model,
                                              const std::string& name, const MatrixRows& rows,
                                              const kernels::BufferSource& buffers, const ForEach& for_each) {
  const QuantizationConfig& config = model.quantization;
  if (config.method == QuantizationMethod::kNone || config.quantizes_at_load()) return std::nullopt;
  if (Matches(config.ignored, name)) return std::nullopt;
  const auto group = std::find_if(config.groups.begin(), config.groups.end(),
                                  [&](const QuantizationConfig::Group& g) { return Matches(g.targets, name); });
  if (group == config.groups.end()) return std::nullopt;
  if (config.method == QuantizationMethod::kGptq || config.method == QuantizationMethod::kAwq) {
    if (!weights.ShapeOf(name + ".qweight")) return std::nullopt;
    const bool is_gptq = config.method == QuantizationMethod::kGptq;
    return StoreGroups((is_gptq ? OpenGptq : OpenAwq)(weights, config, name, rows), rows, buffers, for_each);
  }
  if (config.method == QuantizationMethod::kBitsAndBytes) {
    if (!HasBitsAndBytes(weights, group->scheme, name)) return std::nullopt;
    return StoreGroups(OpenBitsAndBytes(weights, group->scheme, name, rows), rows, buffers, for_each);
  }
  if (config.method == QuantizationMethod::kHqq) {
    if (!weights.ShapeOf(name + ".W_q")) return std::nullopt;
    return StoreGroups(OpenHqq(weights, group->scheme, name, rows), rows, buffers, for_each);
  }
  if (group->scheme.float4 != Float4Format::kNone) {
    const std::string codes = Float4Codes(config.method, name);
    if (!weights.ShapeOf(codes) || IsFloat(weights, codes, rows)) return std::nullopt;
    return StoreGroups(OpenFloat4(weights, config.method, group->scheme.float4, name, rows), rows, buffers, for_each);
  }
  if (!HasCodes(weights, group->scheme, name, rows)) return std::nullopt;
  return StoreGroups(OpenRows(weights, group->scheme, name, rows), rows, buffers, for_each);
}

}  // namespace vllm
