#include "kernels/matrix/checkpoint_quant_matrix.h"

#include <utility>

namespace vllm::kernels {

std::optional<QuantFormat> BlockFormat(WeightType type) {
  switch (type) {
    case WeightType::kQ8_0:
      return QuantFormat::kQ8_0;
    case WeightType::kQ4_0:
      return QuantFormat::kQ4_0;
    case WeightType::kQ4_1:
      return QuantFormat::kQ4_1;
    case WeightType::kQ5_0:
      return QuantFormat::kQ5_0;
    case WeightType::kQ5_1:
      return QuantFormat::kQ5_1;
    case WeightType::kQ2_K:
      return QuantFormat::kQ2_K;
    case WeightType::kQ3_K:
      return QuantFormat::kQ3_K;
    case WeightType::kQ4_K:
      return QuantFormat::kQ4_K;
    case WeightType::kQ5_K:
      return QuantFormat::kQ5_K;
    case WeightType::kQ6_K:
      return QuantFormat::kQ6_K;
    case WeightType::kIQ4_NL:
      return QuantFormat::kIQ4_NL;
    case WeightType::kIQ4_XS:
      return QuantFormat::kIQ4_XS;
    case WeightType::kMXFP4:
      return QuantFormat::kMXFP4;
    case WeightType::kIQ1_S:
      return QuantFormat::kIQ1_S;
    case WeightType::kIQ1_M:
      return QuantFormat::kIQ1_M;
    case WeightType::kIQ2_XXS:
      return QuantFormat::kIQ2_XXS;
    case WeightType::kIQ2_XS:
      return QuantFormat::kIQ2_XS;
    case WeightType::kIQ2_S:
      return QuantFormat::kIQ2_S;
    case WeightType::kIQ3_XXS:
      return QuantFormat::kIQ3_XXS;
    case WeightType::kIQ3_S:
      return QuantFormat::kIQ3_S;
    case WeightType::kTQ1_0:
      return QuantFormat::kTQ1_0;
    case WeightType::kTQ2_0:
      return QuantFormat::kTQ2_0;
    case WeightType::kNVFP4:
      return QuantFormat::kNVFP4;
    default:
      return std::nullopt;
  }
}

int64_t BlockColumns(QuantFormat format) {
  switch (format) {
    case QuantFormat::kQ2_K:
    case QuantFormat::kQ3_K:
    case QuantFormat::kQ4_K:
    case QuantFormat::kQ5_K:
    case QuantFormat::kQ6_K:
    case QuantFormat::kIQ4_XS:
    case QuantFormat::kIQ1_S:
    case QuantFormat::kIQ1_M:
    case QuantFormat::kIQ2_XXS:
    case QuantFormat::kIQ2_XS:
    case QuantFormat::kIQ2_S:
    case QuantFormat::kIQ3_XXS:
    case QuantFormat::kIQ3_S:
    case QuantFormat::kTQ1_0:
    case QuantFormat::kTQ2_0:
      return 256;
    case QuantFormat::kNVFP4:
      return 64;
    default:
      return kQuantColumns;
  }
}

int64_t QuantRowBytes(QuantFormat format, int64_t num_columns) {
  if (format == QuantFormat::kGroupUInt4 || format == QuantFormat::kGroupTable4) return num_columns / 2;
  if (format == QuantFormat::kGroupUInt8 || format == QuantFormat::kGroupFloat8) return num_columns;
  for (int i = 0; i <= static_cast<int>(kLastWeightType); ++i) {
    const auto type = static_cast<WeightType>(i);
    if (BlockFormat(type) == format) return BytesOf(type, num_columns);
  }
  return 0;
}

CheckpointQuantMatrix::CheckpointQuantMatrix(QuantFormat format, int64_t num_rows, int64_t num_columns,
                                             const BufferSource& buffers) {
  InitializeView(format, num_rows, num_columns);
  data_ = std::move(buffers({static_cast<size_t>(num_rows * view_.row_bytes)}).front());
  view_.data = data_.as<uint8_t>();
}

CheckpointQuantMatrix::CheckpointQuantMatrix(QuantFormat format, int64_t num_rows, int64_t num_columns, Groups groups,
                                             const BufferSource& buffers) {
  InitializeView(format, num_rows, num_columns);
  group_of_chunk_ = std::move(groups.group_of_chunk);
  table_ = std::move(groups.table);
  scale_table_ = std::move(groups.scale_table);
  view_.scale_type = groups.scale_type;
  view_.table = table_.empty() ? nullptr : table_.data();
  view_.scale_table = scale_table_.empty() ? nullptr : scale_table_.data();
  view_.has_scale_per_input_row = groups.has_scale_per_input_row;
  const auto count = static_cast<size_t>(num_rows * groups.num_groups);
  const auto data_bytes = static_cast<size_t>(num_rows * view_.row_bytes);
  std::vector<size_t> sizes = {data_bytes, count * static_cast<size_t>(view_.scale_bytes())};
  if (groups.has_zeros) sizes.push_back(count * sizeof(int16_t));
  if (groups.has_float_zeros) sizes.push_back(count * sizeof(float));
  std::vector<AlignedBuffer> memory = buffers(sizes);
  data_ = std::move(memory[0]);
  scales_ = std::move(memory[1]);
  if (memory.size() > 2) zeros_ = std::move(memory[2]);
  view_.data = data_.as<uint8_t>();
  view_.num_groups = groups.num_groups;
  view_.scales = scales_.data();
  view_.zeros = groups.has_zeros ? zeros_.as<int16_t>() : nullptr;
  view_.float_zeros = groups.has_float_zeros ? zeros_.as<float>() : nullptr;
  view_.zero_point = groups.zero_point;
  view_.group_of_chunk = group_of_chunk_.data();
}

void CheckpointQuantMatrix::InitializeView(QuantFormat format, int64_t num_rows, int64_t num_columns) {
  view_.format = format;
  view_.num_rows = num_rows;
  view_.num_columns = num_columns;
  view_.row_bytes = QuantRowBytes(format, num_columns);
}

void CheckpointQuantMatrix::SetCodes(int64_t n, const uint8_t* codes) {
  uint8_t* to = row(n);
  if (view_.row_bytes == view_.num_columns) {
    for (int64_t k = 0; k < view_.num_columns; ++k) to[k] = codes[k];
    return;
  }
  for (int64_t k = 0; k < view_.num_columns; k += kQuantColumns) {
    for (int64_t i = 0; i < kGroupChunk; ++i) {
      to[k / 2 + i] = static_cast<uint8_t>((codes[k + i] & 0x0f) | (codes[k + kGroupChunk + i] << 4));
    }
  }
}

}  // namespace vllm::kernels
