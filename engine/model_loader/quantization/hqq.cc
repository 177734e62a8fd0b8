#include "engine/model_loader/quantization/hqq.h"

#include "engine/model_loader/quantization/tensor.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

GroupSource OpenHqq(const WeightSource& weights, const QuantizationScheme& scheme, const std::string& name,
                    const MatrixRows& rows) {
  const int64_t in = rows.in_features, bits = scheme.bits, per_byte = 8 / bits;
  const int64_t group_size = scheme.group_size <= 0 ? in : scheme.group_size;
  if (in % group_size != 0) {
    RejectTensor(name + ".W_q", "in_features is not a multiple of group_size " + std::to_string(group_size) + " (" +
                                    std::to_string(in) + ")");
  }
  const int64_t groups_per_row = in / group_size, num_groups = rows.out_features * groups_per_row;
  if (num_groups % per_byte != 0) {
    RejectTensor(name + ".W_q", "number of groups is not a multiple of " + std::to_string(per_byte) + " (" +
                                    std::to_string(num_groups) + ")");
  }
  const int64_t num_rows = num_groups / per_byte;
  const TensorView view = GetTyped(weights, name + ".W_q", {num_rows, group_size}, kernels::WeightType::kUInt8);
  const TensorView scales = GetScales(weights, name + ".scale", {num_groups, 1});
  const TensorView zeros = GetScales(weights, name + ".zero", {num_groups, 1});
  GroupSource source;
  source.format = bits == 8 ? kernels::QuantFormat::kGroupUInt8 : kernels::QuantFormat::kGroupUInt4;
  source.scale_type = scales.dtype();
  source.group_of_column = RunsOfGroups(in, group_size);
  source.scale = [=](int64_t n, int64_t g) { return scales.Row(n * groups_per_row + g); };
  source.float_zero = [=](int64_t n, int64_t g) {
    float value;
    kernels::ConvertToFloat(zeros.Row(n * groups_per_row + g), zeros.dtype(), 1, &value);
    return value;
  };
  source.codes = [=](int64_t row, int64_t count, uint8_t* codes) {
    const auto mask = static_cast<uint8_t>((1 << bits) - 1);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < rows.in_features; ++k) {
        const int64_t group = (row + i) * groups_per_row + k / group_size;
        const auto byte = static_cast<uint8_t>(view.Row(group % num_rows)[k % group_size]);
        codes[i * rows.in_features + k] = static_cast<uint8_t>(byte >> (8 - bits * (group / num_rows + 1))) & mask;
      }
    }
  };
  return source;
}

}  // namespace vllm
