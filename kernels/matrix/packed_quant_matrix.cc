#include "kernels/matrix/packed_quant_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace vllm::kernels {

namespace {

constexpr int64_t kRun = 4 * kPanelRows;  // bytes per run: four for each of 16 rows
constexpr int64_t kHalfBlock = kBlockColumns / 2;
constexpr int64_t kRuns = kHalfBlock / 4;  // runs of nibbles per block
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
  view.has_minimums = form.has_minimums;
  const auto code_bytes = static_cast<size_t>(view.num_panels() * view.num_blocks() * view.block_bytes());
  if (form.has_super_scales) {
    return {code_bytes, static_cast<size_t>(view.num_panels() * view.num_supers() * view.super_bytes())};
  }
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
  view_.has_minimums = form.has_minimums;
  std::vector<AlignedBuffer> memory = buffers(BufferSizes(form, num_rows, num_columns));
  codes_ = std::move(memory[0]);
  view_.codes = codes_.as<uint8_t>();
  if (form.has_super_scales) {
    supers_ = std::move(memory[1]);
    view_.supers = supers_.as<uint8_t>();
    return;
  }
  scales_ = std::move(memory[1]);
  view_.scales = scales_.as<uint16_t>();
  if (!form.has_minimums) return;
  minimums_ = std::move(memory[2]);
  view_.minimums = minimums_.as<uint16_t>();
}

void PackedQuantMatrix::SetRow(int64_t row, const QuantRow& values) {
  const uint8_t* const codes = values.codes;
  if (view_.bits == 8) {
    // The blocks of a panel are contiguous, so all runs of a row are the same distance apart.
    uint8_t* const to = Codes(row, 0);
    int64_t k = 0;
    for (; k + 4 <= view_.num_columns; k += 4) std::memcpy(to + k / 4 * kRun, codes + k, 4);
    for (; k < view_.num_columns; ++k) to[k / 4 * kRun + k % 4] = codes[k];
  } else {
    for (int64_t block = 0; block < view_.num_blocks(); ++block) {
      const int64_t k = block * kBlockColumns;
      std::array<uint8_t, kBlockColumns> padded{};
      std::copy_n(codes + k, std::min(kBlockColumns, view_.num_columns - k), padded.begin());
      SetBlock(row, block, padded.data());
    }
  }
  SetScales(row, values);
}

void PackedQuantMatrix::SetScales(int64_t row, const QuantRow& values) {
  if (view_.supers == nullptr) {
    for (int64_t i = 0; i < view_.num_scales(); ++i) {
      Scale(row, i) = FloatToFloat16(values.scales[i]);
      if (view_.has_minimums) minimums_.as<uint16_t>()[ScaleIndex(row, i)] = FloatToFloat16(values.minimums[i]);
    }
    return;
  }
  const int64_t per_super = kSuperColumns / view_.scale_columns, lane = row % kPanelRows;
  const int64_t scale_bytes = per_super * kPanelRows;
  for (int64_t super = 0; super < view_.num_supers(); ++super) {
    uint8_t* to = Super(row, super);
    const auto store = [&](float value) {
      const uint16_t half = FloatToFloat16(value);
      std::memcpy(to + 2 * lane, &half, sizeof(half));
      to += 2 * kPanelRows;
    };
    store(values.super_scales[super]);
    if (view_.has_minimums) store(values.super_minimums[super]);
    const int64_t first = super * per_super, count = std::min(per_super, view_.num_scales() - first);
    for (int64_t i = 0; i < count; ++i) {
      to[i * kPanelRows + lane] = static_cast<uint8_t>(static_cast<int8_t>(values.scales[first + i]));
      if (!view_.has_minimums) continue;
      to[scale_bytes + i * kPanelRows + lane] = static_cast<uint8_t>(static_cast<int8_t>(values.minimums[first + i]));
    }
  }
}

std::pair<float, float> PackedQuantMatrix::ScaleAndMinimum(int64_t row, int64_t column) const {
  if (view_.supers == nullptr) {
    const int64_t index = ScaleIndex(row, column / view_.scale_columns);
    return {Float16ToFloat(view_.scales[index]), view_.has_minimums ? Float16ToFloat(view_.minimums[index]) : 0.0f};
  }
  const int64_t lane = row % kPanelRows, scale = column % kSuperColumns / view_.scale_columns;
  const uint8_t* from =
      view_.supers + (row / kPanelRows * view_.num_supers() + column / kSuperColumns) * view_.super_bytes();
  const auto half = [&] {
    uint16_t bits;
    std::memcpy(&bits, from + 2 * lane, sizeof(bits));
    from += 2 * kPanelRows;
    return Float16ToFloat(bits);
  };
  const auto integer = [&](int64_t at) {
    return static_cast<float>(static_cast<int8_t>(from[at * kPanelRows + lane]));
  };
  const float super_scale = half(), super_minimum = view_.has_minimums ? half() : 0.0f;
  const int64_t per_super = kSuperColumns / view_.scale_columns;
  return {integer(scale) * super_scale, view_.has_minimums ? integer(per_super + scale) * super_minimum : 0.0f};
}

void PackedQuantMatrix::SetBlock(int64_t row, int64_t block, const uint8_t* codes) {
  // Each word holds four columns, which are four adjacent bytes of a run.
  std::array<uint32_t, kBlockColumns / 4> words;
  std::memcpy(words.data(), codes, sizeof(words));
  const auto store = [to = Codes(row, block)](int64_t run, uint32_t word) {
    std::memcpy(to + run * kRun, &word, sizeof(word));
  };
  constexpr uint32_t kNibble = 0x0f0f0f0f, kBit = 0x01010101, kTwoBits = 0x03030303;
  uint32_t fifths = 0, low = 0, high = 0;
  for (int run = 0; run < kRuns; ++run) {
    const uint32_t first = words[static_cast<size_t>(run)], second = words[static_cast<size_t>(run + kRuns)];
    store(run, (first & kNibble) | (second & kNibble) << 4);
    fifths |= (first >> 4 & kBit) << run | (second >> 4 & kBit) << (run + 4);
    low |= (first >> 4 & kTwoBits) << (2 * run);
    high |= (second >> 4 & kTwoBits) << (2 * run);
  }
  if (view_.bits == 5) store(kRuns, fifths);
  if (view_.bits == 6) {
    store(kRuns, low);
    store(kRuns + 1, high);
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

uint8_t PackedQuantMatrix::CodeAt(int64_t row, int64_t column) const {
  const int64_t block = row / kPanelRows * view_.num_blocks() + column / kBlockColumns;
  const uint8_t* const codes = view_.codes + block * view_.block_bytes() + 4 * (row % kPanelRows);
  const int64_t k = column % kBlockColumns;
  if (view_.bits == 8) return codes[k / 4 * kRun + k % 4];
  const bool is_high = k >= kHalfBlock;
  const int64_t run = k % kHalfBlock / 4, i = k % 4;
  const int lower = is_high ? codes[run * kRun + i] >> 4 : codes[run * kRun + i] & 15;
  const uint8_t* const upper = codes + kRuns * kRun + i;
  int bits = 0;
  if (view_.bits == 5) bits = upper[0] >> (is_high ? run + 4 : run) & 1;
  if (view_.bits == 6) bits = upper[is_high ? kRun : 0] >> (2 * run) & 3;
  return static_cast<uint8_t>(lower | bits << 4);
}

void PackedQuantMatrix::UnpackRow(int64_t row, float* out) const {
  for (int64_t k = 0; k < view_.num_columns; ++k) {
    const uint8_t code = CodeAt(row, k);
    const uint8_t level = view_.levels == nullptr ? code : view_.levels[code];
    const auto [scale, minimum] = ScaleAndMinimum(row, k);
    out[k] = scale * static_cast<float>(level - view_.zero);
    if (view_.has_minimums) out[k] += minimum;
  }
}

}  // namespace vllm::kernels
