#include "kernels/matrix/packed_matrix.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kernels/matrix/panel_transpose.h"

namespace vllm::kernels {

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

// Number of columns that are transposed together, after conversion to the matrix's type if the source type differs. In
// float32, 64 columns of 16 rows take 4 KiB, which fits in L1.
constexpr int64_t kColumnsAtOnce = 64;

// Calls f(i, x[i]) for the first `count` elements x of `from`, converted to float32.
template <typename F>
void ForEachFloat(const std::byte* from, DType dtype, int64_t count, F&& f) {
  const auto each = [&](auto bits, auto&& to_float) {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(&bits, from + static_cast<size_t>(i) * sizeof(bits), sizeof(bits));
      f(i, to_float(bits));
    }
  };
  if (dtype == DType::kFloat32) return each(uint32_t{}, [](uint32_t bits) { return std::bit_cast<float>(bits); });
  if (dtype == DType::kBFloat16) return each(uint16_t{}, BFloat16ToFloat);
  each(uint16_t{}, Float16ToFloat);
}

// Converts `count` elements of `row`, starting at column k, to type `to`.
void Convert(const SourceRow& row, int64_t k, int64_t count, DType to, void* out) {
  const std::byte* from = row.data + static_cast<size_t>(k) * SizeOf(row.dtype);
  if (row.dtype == to) {
    std::memcpy(out, from, static_cast<size_t>(count) * SizeOf(to));
  } else if (to == DType::kFloat32) {
    ForEachFloat(from, row.dtype, count, [&](int64_t i, float value) { static_cast<float*>(out)[i] = value; });
  } else {
    auto* halves = static_cast<uint16_t*>(out);
    if (to == DType::kBFloat16) {
      ForEachFloat(from, row.dtype, count, [&](int64_t i, float value) { halves[i] = FloatToBFloat16(value); });
    } else {
      ForEachFloat(from, row.dtype, count, [&](int64_t i, float value) { halves[i] = FloatToFloat16(value); });
    }
  }
}

}  // namespace

PackedMatrix::PackedMatrix(int64_t num_rows, int64_t num_columns, DType dtype, const BufferSource& buffers) {
  view_ = {nullptr, dtype, num_rows, num_columns};
  const auto bytes = static_cast<size_t>(view_.num_panels() * kPanelRows * view_.stored_columns()) * SizeOf(dtype);
  buffer_ = std::move(buffers({bytes}).front());
  view_.data = buffer_.data();
}

void PackedMatrix::PackPanel(int64_t panel, std::span<const SourceRow> rows) {
  const auto size = static_cast<int64_t>(SizeOf(view_.dtype));
  const int64_t stored = view_.stored_columns();
  std::byte* to = buffer_.as<std::byte>() + panel * kPanelRows * stored * size;
  // The rows that cannot be transposed directly from the source, converted to the matrix's type. Rows past the matrix's
  // last row and columns past its last column are zero.
  std::array<std::array<float, kColumnsAtOnce>, kPanelRows> block{};
  std::array<float, kPanelRows * kColumnsAtOnce> transposed;
  PanelRows from;
  for (int64_t k = 0; k < view_.num_columns; k += kColumnsAtOnce) {
    const int64_t columns = std::min(kColumnsAtOnce, view_.num_columns - k);
    const bool is_whole = columns == kColumnsAtOnce;
    if (!is_whole) block = {};
    for (size_t n = 0; n < from.size(); ++n) {
      from[n] = reinterpret_cast<const std::byte*>(block[n].data());
      if (n >= rows.size()) continue;
      if (is_whole && rows[n].dtype == view_.dtype) {
        from[n] = rows[n].data + k * size;
      } else {
        Convert(rows[n], k, columns, view_.dtype, block[n].data());
      }
    }
    void* out = is_whole ? static_cast<void*>(to + k * kPanelRows * size) : transposed.data();
    if (view_.dtype == DType::kFloat16) {
      TransposeHalves(from, kColumnsAtOnce, static_cast<uint16_t*>(out));
    } else {
      TransposeWords(from, kColumnsAtOnce * size / 4, static_cast<uint32_t*>(out));
    }
    if (is_whole) continue;
    std::memcpy(to + k * kPanelRows * size, transposed.data(), static_cast<size_t>((stored - k) * kPanelRows * size));
  }
}

void PackedMatrix::PackRows(const std::byte* source, DType source_dtype, int64_t source_stride_bytes) {
  std::array<SourceRow, kPanelRows> rows;
  for (int64_t panel = 0; panel < view_.num_panels(); ++panel) {
    const int64_t first = panel * kPanelRows;
    const int64_t count = std::min(kPanelRows, view_.num_rows - first);
    for (int64_t n = 0; n < count; ++n) {
      rows[static_cast<size_t>(n)] = {source + (first + n) * source_stride_bytes, source_dtype};
    }
    PackPanel(panel, std::span(rows).first(static_cast<size_t>(count)));
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
  Convert({source, source_dtype}, 0, count, DType::kFloat32, out);
}

}  // namespace vllm::kernels
