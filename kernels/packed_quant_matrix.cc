#include "kernels/packed_quant_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace vllm {

namespace {

constexpr int64_t kRun = 4 * kPanelRows;  // bytes: four columns of a panel's rows
constexpr int64_t kHalfBlock = kBlockColumns / 2;
constexpr int64_t kIQ4_NLBytes = 2 + kHalfBlock;

}  // namespace

PackedQuantMatrix::PackedQuantMatrix(const PackedQuantForm& form, int64_t num_rows, int64_t num_columns) {
  view_.num_rows = num_rows;
  view_.num_columns = num_columns;
  view_.levels = form.levels;
  view_.scale_columns = form.scale_columns;
  codes_ = AlignedBuffer(static_cast<size_t>(view_.num_panels() * view_.num_blocks() * view_.block_bytes()));
  const auto scale_bytes = static_cast<size_t>(view_.num_panels() * view_.num_scales() * kPanelRows) * sizeof(uint16_t);
  scales_ = AlignedBuffer(scale_bytes);
  view_.codes = codes_.as<uint8_t>();
  view_.scales = scales_.as<uint16_t>();
  if (!form.has_minimums) return;
  minimums_ = AlignedBuffer(scale_bytes);
  view_.minimums = minimums_.as<uint16_t>();
}

void PackedQuantMatrix::SetCodes(int64_t row, const uint8_t* codes) {
  const int64_t panel = row / kPanelRows * view_.num_blocks() * view_.block_bytes();
  uint8_t* to = codes_.as<uint8_t>() + panel + 4 * (row % kPanelRows);
  if (view_.levels == nullptr) {
    int64_t k = 0;
    for (; k + 4 <= view_.num_columns; k += 4) std::memcpy(to + k / 4 * kRun, codes + k, 4);
    for (; k < view_.num_columns; ++k) to[k / 4 * kRun + k % 4] = codes[k];
    return;
  }
  for (int64_t k = 0; k < view_.num_columns; ++k) {
    const int64_t block = k / kBlockColumns * view_.block_bytes(), column = k % kHalfBlock;
    uint8_t& byte = to[block + column / 4 * kRun + column % 4];
    byte = static_cast<uint8_t>(k % kBlockColumns < kHalfBlock ? (byte & 0xf0) | codes[k]
                                                               : (byte & 0x0f) | (codes[k] << 4));
  }
}

void PackedQuantMatrix::SetRow(int64_t row, const uint8_t* codes, const float* scales, const float* minimums) {
  SetCodes(row, codes);
  for (int64_t i = 0; i < view_.num_scales(); ++i) {
    scales_.as<uint16_t>()[ScaleAt(row, i)] = FloatToFloat16(scales[i]);
    if (view_.minimums != nullptr) minimums_.as<uint16_t>()[ScaleAt(row, i)] = FloatToFloat16(minimums[i]);
  }
}

void PackedQuantMatrix::QuantizeRow(const QuantKernels& kernels, int64_t row, const float* values) {
  if (view_.levels == nullptr) {
    QuantizeRow8(row, values);
  } else {
    QuantizeRow4(kernels, row, values);
  }
}

void PackedQuantMatrix::QuantizeRow8(int64_t row, const float* values) {
  std::vector<uint8_t> codes(static_cast<size_t>(view_.num_columns));
  for (int64_t begin = 0; begin < view_.num_columns; begin += kScaleColumns) {
    const int64_t end = std::min(begin + kScaleColumns, view_.num_columns);
    float largest = 0.0f;
    for (int64_t k = begin; k < end; ++k) largest = std::max(largest, std::abs(values[k]));
    uint16_t& scale = scales_.as<uint16_t>()[ScaleAt(row, begin / kScaleColumns)];
    scale = FloatToFloat16(largest / 127.0f);
    const float rounded = Float16ToFloat(scale);
    const float inverse = rounded > 0.0f && std::isfinite(rounded) ? 1.0f / rounded : 0.0f;
    for (int64_t k = begin; k < end; ++k) {
      const float code = std::nearbyintf(values[k] * inverse);
      // What is not finite has some value.
      const int level = code >= -127.0f && code <= 127.0f ? static_cast<int>(code) : (code > 0.0f ? 127 : -127);
      codes[static_cast<size_t>(k)] = static_cast<uint8_t>(level + 128);
    }
  }
  SetCodes(row, codes.data());
}

void PackedQuantMatrix::QuantizeRow4(const QuantKernels& kernels, int64_t row, const float* values) {
  std::vector<uint8_t> codes(static_cast<size_t>(view_.num_blocks() * kBlockColumns));
  for (int64_t b = 0; b < view_.num_blocks(); ++b) {
    const int64_t count = std::min(kBlockColumns, view_.num_columns - b * kBlockColumns);
    std::array<float, kBlockColumns> padded{};
    std::copy_n(values + b * kBlockColumns, count, padded.begin());
    std::array<uint8_t, kIQ4_NLBytes> stored;
    kernels.quantize_iq4_nl(padded.data(), kBlockColumns, stored.data());
    std::memcpy(&scales_.as<uint16_t>()[ScaleAt(row, b)], stored.data(), 2);
    for (int64_t i = 0; i < kHalfBlock; ++i) {
      const uint8_t byte = stored[static_cast<size_t>(2 + i)];
      codes[static_cast<size_t>(b * kBlockColumns + i)] = byte & 0x0f;
      codes[static_cast<size_t>(b * kBlockColumns + kHalfBlock + i)] = byte >> 4;
    }
  }
  SetCodes(row, codes.data());
}

void PackedQuantMatrix::UnpackRow(int64_t row, float* out) const {
  for (int64_t k = 0; k < view_.num_columns; ++k) {
    const int64_t block = row / kPanelRows * view_.num_blocks() + k / kBlockColumns;
    const uint8_t* codes = view_.codes + block * view_.block_bytes() + 4 * (row % kPanelRows);
    const int64_t column = k % kBlockColumns;
    uint8_t level = 0;
    if (view_.levels == nullptr) {
      level = codes[column / 4 * kRun + column % 4];
    } else {
      const int64_t low = column % kHalfBlock;
      const uint8_t byte = codes[low / 4 * kRun + low % 4];
      level = view_.levels[column < kHalfBlock ? byte & 15 : byte >> 4];
    }
    const int64_t at = ScaleAt(row, k / view_.scale_columns);
    out[k] = Float16ToFloat(view_.scales[at]) * static_cast<float>(static_cast<int>(level) - 128);
    if (view_.minimums != nullptr) out[k] += Float16ToFloat(view_.minimums[at]);
  }
}

}  // namespace vllm
