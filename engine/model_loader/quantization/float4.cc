#include "engine/model_loader/quantization/float4.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/model_loader/quantization/tensor.h"

namespace vllm {
namespace {

constexpr std::array<float, 16> kE2M1 = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                         -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

float E4M3ToFloat(uint32_t code) {
  const uint32_t sign = (code & 0x80) << 24, magnitude = code & 0x7f;
  if (magnitude == 0x7f) return std::nanf("");
  // Shifted left by twenty, the bits are a float that is 2^120 times too small. This holds for subnormals too.
  const float value = std::bit_cast<float>(magnitude << 20) * 0x1p120f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

// Returns the only value of the F32 tensor `name`, whose shape is [] or [1].
float ReadMatrixScale(const WeightSource& weights, const std::string& name) {
  const std::optional<std::vector<int64_t>> shape = weights.ShapeOf(name);
  const bool is_vector = shape && shape->size() == 1;
  const TensorView view = is_vector ? GetTyped(weights, name, {1}, kernels::WeightType::kFloat32)
                                    : GetTyped(weights, name, {}, kernels::WeightType::kFloat32);
  float value;
  std::memcpy(&value, view.data.data(), sizeof(value));
  if (!std::isfinite(value) || value <= 0.0f) RejectTensor(name, "must be a finite number above 0");
  return value;
}

constexpr int64_t kNvfp4Columns = 16;
// A block of GGML has four scales, and then the codes of four groups. Columns i and i + 8 of a group share a byte.
constexpr int64_t kBlockGroups = 4, kBlockBytes = 36;

}  // namespace

std::string Float4Codes(QuantizationMethod method, const std::string& name) {
  return name + (method == QuantizationMethod::kModelOpt ? ".weight" : ".weight_packed");
}

GroupSource OpenFloat4(const WeightSource& weights, QuantizationMethod method, Float4Format format,
                       const std::string& name, const MatrixRows& rows) {
  const bool is_nvfp4 = format == Float4Format::kNvfp4;
  const int64_t group_size = is_nvfp4 ? kNvfp4Columns : 32;
  const std::string codes_name = Float4Codes(method, name);
  if (rows.in_features % group_size != 0) {
    RejectTensor(codes_name, "in_features is not a multiple of " + std::to_string(group_size) + " (" +
                                 std::to_string(rows.in_features) + ")");
  }
  const TensorView codes =
      GetTyped(weights, codes_name, {rows.out_features, rows.in_features / 2}, kernels::WeightType::kUInt8);
  const int64_t num_groups = rows.in_features / group_size;
  const TensorView scales = GetTyped(weights, name + ".weight_scale", {rows.out_features, num_groups},
                                     is_nvfp4 ? kernels::WeightType::kFloat8E4M3 : kernels::WeightType::kUInt8);
  GroupSource source;
  source.format = kernels::QuantFormat::kGroupTable4;
  source.group_of_column = RunsOfGroups(rows.in_features, group_size);
  source.table.assign(kE2M1.begin(), kE2M1.end());
  source.scale_table.resize(256);
  if (is_nvfp4) {
    const bool multiplies = method == QuantizationMethod::kModelOpt;
    const float scale = ReadMatrixScale(weights, name + (multiplies ? ".weight_scale_2" : ".weight_global_scale"));
    for (uint32_t i = 0; i < 256; ++i) {
      source.scale_table[i] = multiplies ? E4M3ToFloat(i) * scale : E4M3ToFloat(i) / scale;
    }
  } else {
    for (int i = 0; i < 255; ++i) source.scale_table[static_cast<size_t>(i)] = std::ldexp(1.0f, i - 127);
    source.scale_table[255] = std::nanf("");
  }
  source.scale = [=](int64_t n, int64_t g) { return scales.data.data() + n * num_groups + g; };
  source.codes = [=](int64_t row, int64_t count, uint8_t* out) {
    for (int64_t i = 0; i < count; ++i) {
      const std::byte* from = codes.Row(row + i);
      for (int64_t k = 0; k < rows.in_features; ++k) {
        const auto byte = static_cast<uint8_t>(from[k / 2]);
        out[i * rows.in_features + k] = static_cast<uint8_t>(k % 2 == 0 ? byte & 0x0f : byte >> 4);
      }
    }
  };
  return source;
}

GroupSource OpenScaledNvfp4(const TensorView& view, const MatrixRows& rows) {
  GroupSource source;
  source.format = kernels::QuantFormat::kGroupTable4;
  source.group_of_column = RunsOfGroups(rows.in_features, kNvfp4Columns);
  source.table.assign(kE2M1.begin(), kE2M1.end());
  source.scale_table.resize(256);
  for (uint32_t i = 0; i < 256; ++i) {
    const float value = std::bit_cast<float>((i & 0x7f) << 20) * 0x1p120f;
    source.scale_table[i] = i == 0x7f ? 0.0f : value * view.scale;
  }
  source.scale = [=](int64_t n, int64_t g) { return view.Row(n) + g / kBlockGroups * kBlockBytes + g % kBlockGroups; };
  source.codes = [=](int64_t row, int64_t count, uint8_t* out) {
    for (int64_t i = 0; i < count; ++i) {
      const std::byte* from = view.Row(row + i);
      for (int64_t k = 0; k < rows.in_features; ++k) {
        const int64_t group = k / kNvfp4Columns, in_group = k % kNvfp4Columns;
        const std::byte* codes =
            from + group / kBlockGroups * kBlockBytes + kBlockGroups + group % kBlockGroups * (kNvfp4Columns / 2);
        const auto byte = static_cast<uint8_t>(codes[in_group % 8]);
        out[i * rows.in_features + k] = static_cast<uint8_t>(in_group < 8 ? byte & 0x0f : byte >> 4);
      }
    }
  };
  return source;
}

}  // namespace vllm
