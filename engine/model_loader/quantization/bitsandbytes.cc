#include "engine/model_loader/quantization/bitsandbytes.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/config/escape.h"
#include "engine/model_loader/config_fields.h"
#include "engine/model_loader/json_file.h"
#include "engine/model_loader/quantization/tensor.h"

namespace vllm {
namespace {

constexpr int64_t kMaxBlock = int64_t{1} << 24;
constexpr int64_t kMaxStateBytes = int64_t{1} << 16;

std::optional<std::string> StateName(const WeightSource& weights, const std::string& name) {
  for (const char* type : {"nf4", "fp4"}) {
    std::string state = name + ".weight.quant_state.bitsandbytes__" + type;
    if (weights.ShapeOf(state)) return state;
  }
  return std::nullopt;
}

// The settings of a layer with 4-bit codes.
struct QuantState {
  int64_t block_size = 0;
  int64_t nested_block_size = 0;  // 0: scales are not quantized
  float nested_offset = 0.0f;
};

QuantState ReadState(const WeightSource& weights, const std::string& name, const MatrixRows& rows) {
  const std::vector<int64_t> shape = *weights.ShapeOf(name);
  if (shape.size() != 1 || shape[0] > kMaxStateBytes) RejectTensor(name, "must be a vector of at most 65536 bytes");
  const TensorView view = GetTyped(weights, name, {shape[0]}, kernels::WeightType::kUInt8);
  const std::string what = "tensor " + Escape(name);
  const nlohmann::json object = ParseJson({reinterpret_cast<const char*>(view.data.data()), view.data.size()}, what);
  const ConfigFields fields(object, what);
  QuantState state;
  state.block_size = fields.RequiredInt("blocksize", 1, kMaxBlock);
  if (fields.Ints("shape", 0, std::numeric_limits<int64_t>::max()) !=
      std::vector<int64_t>{rows.out_features, rows.in_features}) {
    fields.Reject("shape", "not [" + std::to_string(rows.out_features) + ", " + std::to_string(rows.in_features) + "]");
  }
  if (!fields.Has("nested_blocksize")) return state;
  state.nested_block_size = fields.RequiredInt("nested_blocksize", 1, kMaxBlock);
  const std::optional<double> offset = fields.Double("nested_offset", -1e30, 1e30);
  if (!offset) fields.Fail("nested_offset", "missing");
  state.nested_offset = static_cast<float>(*offset);
  return state;
}

std::vector<float> ReadFloats(const WeightSource& weights, const std::string& name, int64_t count) {
  const TensorView view = GetTyped(weights, name, {count}, kernels::WeightType::kFloat32);
  std::vector<float> values(static_cast<size_t>(count));
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

// Returns the scales of all blocks, computed as bitsandbytes does.
std::vector<float> ReadScales(const WeightSource& weights, const std::string& weight, const QuantState& state,
                              int64_t num_blocks) {
  const std::string name = weight + ".absmax";
  if (state.nested_block_size == 0) return ReadFloats(weights, name, num_blocks);
  const TensorView codes = GetTyped(weights, name, {num_blocks}, kernels::WeightType::kUInt8);
  const int64_t num_nested = (num_blocks + state.nested_block_size - 1) / state.nested_block_size;
  const std::vector<float> nested = ReadFloats(weights, weight + ".nested_absmax", num_nested);
  const std::vector<float> map = ReadFloats(weights, weight + ".nested_quant_map", 256);
  std::vector<float> scales(static_cast<size_t>(num_blocks));
  for (int64_t i = 0; i < num_blocks; ++i) {
    const auto code = static_cast<size_t>(codes.data[static_cast<size_t>(i)]);
    // The product is rounded before the sum.
    const float product = map[code] * nested[static_cast<size_t>(i / state.nested_block_size)];
    scales[static_cast<size_t>(i)] = product + state.nested_offset;
  }
  return scales;
}

GroupSource OpenInt8(const WeightSource& weights, const std::string& name, const MatrixRows& rows) {
  // transformers multiplies code * SCB by this, which is about 1 / 127. The products differ in the last bit at most.
  constexpr float kFactor = 7.874015718698502e-3f;
  const TensorView view =
      GetTyped(weights, name + ".weight", {rows.out_features, rows.in_features}, kernels::WeightType::kInt8);
  auto scales = std::make_shared<std::vector<float>>(ReadFloats(weights, name + ".SCB", rows.out_features));
  for (float& scale : *scales) scale *= kFactor;
  GroupSource source;
  source.format = kernels::QuantFormat::kGroupUInt8;
  source.group_of_column = RunsOfGroups(rows.in_features, -1);
  source.zero_point = 128;
  source.scale = [scales](int64_t n, int64_t /*group*/) {
    return reinterpret_cast<const std::byte*>(scales->data() + n);
  };
  source.codes = [=](int64_t row, int64_t count, uint8_t* codes) {
    for (int64_t i = 0; i < count; ++i) {
      const std::byte* from = view.Row(row + i);
      for (int64_t k = 0; k < rows.in_features; ++k) {
        codes[i * rows.in_features + k] = static_cast<uint8_t>(from[k]) ^ 0x80;
      }
    }
  };
  return source;
}

}  // namespace

bool HasBitsAndBytes(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name) {
  return scheme.bits == 8 ? weights.ShapeOf(name + ".SCB").has_value() : StateName(weights, name).has_value();
}

GroupSource OpenBitsAndBytes(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name,
                             const MatrixRows& rows) {
  if (scheme.bits == 8) return OpenInt8(weights, name, rows);
  const std::string weight = name + ".weight";
  const int64_t in = rows.in_features, num_codes = rows.out_features * in;
  const QuantState state = ReadState(weights, *StateName(weights, name), rows);
  const TensorView view = GetTyped(weights, weight, {(num_codes + 1) / 2, 1}, kernels::WeightType::kUInt8);
  const int64_t num_blocks = (num_codes + state.block_size - 1) / state.block_size;
  const auto scales = std::make_shared<std::vector<float>>(ReadScales(weights, weight, state, num_blocks));
  // The largest runs of columns that are in one block in every row.
  const int64_t run = std::gcd(in, state.block_size);
  GroupSource source;
  source.format = kernels::QuantFormat::kGroupTable4;
  source.table = ReadFloats(weights, weight + ".quant_map", 16);
  source.group_of_column = RunsOfGroups(in, run);
  source.scale = [=](int64_t n, int64_t g) {
    return reinterpret_cast<const std::byte*>(scales->data() + (n * in + g * run) / state.block_size);
  };
  source.codes = [=](int64_t row, int64_t count, uint8_t* codes) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = (row + i) * in;
      for (int64_t k = 0; k < rows.in_features; ++k) {
        const auto byte = static_cast<uint8_t>(view.data[static_cast<size_t>((first + k) / 2)]);
        codes[i * rows.in_features + k] = static_cast<uint8_t>((first + k) % 2 == 0 ? byte >> 4 : byte & 0x0f);
      }
    }
  };
  return source;
}

}  // namespace vllm
