#include "kernels/matrix/packed_quant_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace vllm::kernels {

namespace {

constexpr int64_t kRun = 4 * kPanelRows;  // bytes per run: four for each of 16 rows
constexpr int64_t kHalfBlock = kBlockColumns / 2;
constexpr int64_t kIQ4_NLBytes = 2 + kHalfBlock;

using Floats = float __attribute__((vector_size(16)));
using Ints = int32_t __attribute__((vector_size(16)));

Floats Load(const float* x) {
  Floats values;
  std::memcpy(&values, x, sizeof(values));
  return values;
}

Floats Broadcast(float x) { return Floats{x, x, x, x}; }

// Returns the largest |x[i]|, ignoring NaN. The order does not matter for a maximum. REQUIRES: count is a multiple of
// 4.
float LargestMagnitude(const float* x, int64_t count) {
  Floats largest{};
  for (int64_t i = 0; i < count; i += 4) {
    const Floats value = Load(x + i);
    const Floats magnitude = value < 0.0f ? -value : value;
    largest = largest < magnitude ? magnitude : largest;
  }
  return std::max({largest[0], largest[1], largest[2], largest[3]});
}

// Rounds four values, given in units of the scale, to nearest, ties to even, and clamps them to [-127, 127]. Returns
// their levels as four adjacent bytes of a run. The level of a value that is not finite is unspecified. Adding and
// subtracting 1.5 * 2^23 rounds magnitudes below 2^22 to integers. The magnitudes are below 2^8, because rounding the
// scale to float16 changes it by less than a factor of two.
uint32_t EightBitLevels(Floats codes) {
  const Floats whole = (codes + 12582912.0f) - 12582912.0f;
  const Floats low = whole >= -127.0f ? whole : Broadcast(-127.0f);
  const Ints levels = __builtin_convertvector(low <= 127.0f ? low : Broadcast(127.0f), Ints) + 128;
  return static_cast<uint32_t>(levels[0] | levels[1] << 8 | levels[2] << 16) | static_cast<uint32_t>(levels[3]) << 24;
}

}  // namespace

std::vector<size_t> PackedQuantMatrix::BufferSizes(const PackedQuantForm& form, int64_t num_rows, int64_t num_columns) {
  PackedQuantView view;
  view.num_rows = num_rows;
  view.num_columns = num_columns;
  view.bits = form.bits;
  view.scale_columns = form.scale_columns;
  const auto code_bytes = static_cast<size_t>(view.num_panels() * view.num_blocks() * view.block_bytes());
  const auto scale_bytes = static_cast<size_t>(view.num_panels() * view.num_scales() * kPanelRows) * sizeof(uint16_t);
  std::vector<size_t> sizes = {code_bytes, scale_bytes};
  if (form.has_minimums) sizes.push_back(scale_bytes);
  return sizes;
}

PackedQuantMatrix::PackedQuantMatrix(const PackedQuantForm& form, int64_t num_rows, int64_t num_columns,
                                     const BufferSource& buffers) {
  view_.num_rows = num_rows;
  view_.num_columns = num_columns;
  view_.bits = form.bits;
  view_.zero = form.zero;
  view_.levels = form.levels;
  view_.scale_columns = form.scale_columns;
  std::vector<AlignedBuffer> memory = buffers(BufferSizes(form, num_rows, num_columns));
  codes_ = std::move(memory[0]);
  scales_ = std::move(memory[1]);
  view_.codes = codes_.as<uint8_t>();
  view_.scales = scales_.as<uint16_t>();
  if (!form.has_minimums) return;
  minimums_ = std::move(memory[2]);
  view_.minimums = minimums_.as<uint16_t>();
}

void PackedQuantMatrix::SetRow(int64_t row, const uint8_t* codes, const float* scales, const float* minimums) {
  // The blocks of a panel are contiguous, so all runs of a row are the same distance apart.
  uint8_t* to = Codes(row, 0);
  int64_t k = 0;
  if (view_.bits != 4) {
    for (; k + 4 <= view_.num_columns; k += 4) std::memcpy(to + k / 4 * kRun, codes + k, 4);
    for (; k < view_.num_columns; ++k) to[k / 4 * kRun + k % 4] = codes[k];
  }
  for (; k < view_.num_columns; k += kBlockColumns, to += kRun * kHalfBlock / 4) {
    std::array<uint8_t, kBlockColumns> block{};
    std::copy_n(codes + k, std::min(kBlockColumns, view_.num_columns - k), block.begin());
    for (size_t i = 0; i < kHalfBlock; ++i) {
      to[i / 4 * kRun + i % 4] = static_cast<uint8_t>(block[i] | block[i + kHalfBlock] << 4);
    }
  }
  for (int64_t i = 0; i < view_.num_scales(); ++i) {
    Scale(row, i) = FloatToFloat16(scales[i]);
    if (view_.minimums != nullptr) minimums_.as<uint16_t>()[ScaleIndex(row, i)] = FloatToFloat16(minimums[i]);
  }
}

void PackedQuantMatrix::QuantizeRow(const QuantKernels& kernels, int64_t row, const float* values) {
  if (view_.bits == 8) {
    QuantizeRow8(row, values);
  } else {
    QuantizeRow4(kernels, row, values);
  }
}

void PackedQuantMatrix::QuantizeRow8(int64_t row, const float* values) {
  std::array<float, kScaleColumns> padded{};
  for (int64_t begin = 0; begin < view_.num_columns; begin += kScaleColumns) {
    const int64_t count = std::min(kScaleColumns, view_.num_columns - begin);
    const float* from = values + begin;
    if (count < kScaleColumns) {
      std::copy_n(from, count, padded.begin());
      from = padded.data();
    }
    uint16_t& scale = Scale(row, begin / kScaleColumns);
    scale = FloatToFloat16(LargestMagnitude(from, kScaleColumns) / 127.0f);
    const float rounded = Float16ToFloat(scale);
    const float inverse = rounded > 0.0f && std::isfinite(rounded) ? 1.0f / rounded : 0.0f;
    // The blocks of a panel are contiguous, so all runs of a row are the same distance apart.
    uint8_t* to = Codes(row, begin / kBlockColumns);
    const int64_t whole = count / 4 * 4;
    for (int64_t k = 0; k < whole; k += 4, to += kRun) {
      const uint32_t levels = EightBitLevels(Load(from + k) * inverse);
      std::memcpy(to, &levels, sizeof(levels));
    }
    if (whole == count) continue;
    // The codes of columns past the end stay zero.
    const uint32_t levels = EightBitLevels(Load(from + whole) * inverse);
    std::memcpy(to, &levels, static_cast<size_t>(count - whole));
  }
}

void PackedQuantMatrix::QuantizeRow4(const QuantKernels& kernels, int64_t row, const float* values) {
  for (int64_t b = 0; b < view_.num_blocks(); ++b) {
    const float* from = values + b * kBlockColumns;
    const int64_t count = std::min(kBlockColumns, view_.num_columns - b * kBlockColumns);
    std::array<float, kBlockColumns> padded{};
    std::copy_n(from, count, padded.begin());
    std::array<uint8_t, kIQ4_NLBytes> stored;
    kernels.quantize_iq4_nl(padded.data(), kBlockColumns, stored.data());
    std::memcpy(&Scale(row, b), stored.data(), 2);
    // IQ4_NL already stores columns i and i + 16 in one byte.
    uint8_t* to = Codes(row, b);
    for (size_t i = 0; i < kHalfBlock; ++i) to[i / 4 * kRun + i % 4] = stored[2 + i];
  }
}

void PackedQuantMatrix::UnpackRow(int64_t row, float* out) const {
  for (int64_t k = 0; k < view_.num_columns; ++k) {
    const int64_t block = row / kPanelRows * view_.num_blocks() + k / kBlockColumns;
    const uint8_t* codes = view_.codes + block * view_.block_bytes() + 4 * (row % kPanelRows);
    const int64_t column = k % kBlockColumns;
    uint8_t level = 0;
    if (view_.bits != 4) {
      level = codes[column / 4 * kRun + column % 4];
    } else {
      const int64_t low = column % kHalfBlock;
      const uint8_t byte = codes[low / 4 * kRun + low % 4];
      level = column < kHalfBlock ? byte & 15 : byte >> 4;
      if (view_.levels != nullptr) level = view_.levels[level];
    }
    const int64_t index = ScaleIndex(row, k / view_.scale_columns);
    out[k] = Float16ToFloat(view_.scales[index]) * static_cast<float>(level - view_.zero);
    if (view_.minimums != nullptr) out[k] += Float16ToFloat(view_.minimums[index]);
  }
}

}  // namespace vllm::kernels
