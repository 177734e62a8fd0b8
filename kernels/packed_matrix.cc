#include "kernels/packed_matrix.h"

#include <cstring>

namespace vllm {

namespace {

float LoadElement(const std::byte* p, DType dtype) {
  if (dtype == DType::kFloat32) {
    float value;
    std::memcpy(&value, p, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return dtype == DType::kBFloat16 ? BFloat16ToFloat(bits) : Float16ToFloat(bits);
}

int64_t ElementInPanel(DType dtype, int64_t row, int64_t k) {
  const int64_t n = row % kPanelRows;
  return dtype == DType::kBFloat16 ? k / 2 * 2 * kPanelRows + 2 * n + k % 2 : k * kPanelRows + n;
}

uint16_t ToHalf(float value, DType dtype) {
  return dtype == DType::kBFloat16 ? FloatToBFloat16(value) : FloatToFloat16(value);
}

}  // namespace

PackedMatrix::PackedMatrix(int64_t num_rows, int64_t num_columns, DType dtype) {
  view_ = {nullptr, dtype, num_rows, num_columns};
  buffer_ =
      AlignedBuffer(static_cast<size_t>(view_.num_panels() * kPanelRows * view_.stored_columns()) * SizeOf(dtype));
  view_.data = buffer_.data();
}

void PackedMatrix::PackRows(const std::byte* source, DType source_dtype, int64_t source_stride_bytes, int64_t first_row,
                            int64_t count) {
  const int64_t columns = view_.num_columns;
  const size_t source_size = SizeOf(source_dtype);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = first_row + i;
    const int64_t panel = row / kPanelRows * view_.stored_columns() * kPanelRows;
    const std::byte* from = source + i * source_stride_bytes;
    if (view_.dtype == DType::kFloat32) {
      float* to = buffer_.as<float>() + panel + row % kPanelRows;
      for (int64_t k = 0; k < columns; ++k)
        to[k * kPanelRows] = LoadElement(from + static_cast<size_t>(k) * source_size, source_dtype);
      continue;
    }
    uint16_t* to = buffer_.as<uint16_t>() + panel;
    for (int64_t k = 0; k < columns; ++k) {
      const std::byte* p = from + static_cast<size_t>(k) * source_size;
      uint16_t& element = to[ElementInPanel(view_.dtype, row, k)];
      if (source_dtype == view_.dtype) {
        std::memcpy(&element, p, sizeof(uint16_t));
      } else {
        element = ToHalf(LoadElement(p, source_dtype), view_.dtype);
      }
    }
  }
}

void PackedMatrix::UnpackRow(int64_t row, float* out) const {
  const int64_t panel = row / kPanelRows * view_.stored_columns() * kPanelRows;
  const auto* from = static_cast<const std::byte*>(view_.data);
  const size_t size = SizeOf(view_.dtype);
  for (int64_t k = 0; k < view_.num_columns; ++k) {
    out[k] = LoadElement(from + static_cast<size_t>(panel + ElementInPanel(view_.dtype, row, k)) * size, view_.dtype);
  }
}

void ConvertToFloat(const std::byte* source, DType source_dtype, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = LoadElement(source + static_cast<size_t>(i) * SizeOf(source_dtype), source_dtype);
}

}  // namespace vllm
