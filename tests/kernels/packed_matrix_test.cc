// Compares packing with plain loops over single elements, and checks the bytes of the packed layouts.
#include "kernels/matrix/packed_matrix.h"
#include "kernels/isa/kernels_for.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kernels/kernels.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/packed_layout.h"
#include "kernels/matrix/packed_quant_matrix.h"
#include "kernels/matrix/quant_codes.h"
#include "kernels/matrix/weight_type.h"
#include "tests/support/random_values.h"

namespace vllm::kernels {
namespace {

constexpr std::array kTypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

uint32_t BitsAt(const std::byte* p, DType dtype) {
  uint32_t bits = 0;
  std::memcpy(&bits, p, SizeOf(dtype));
  return bits;
}

uint32_t Converted(uint32_t bits, DType from, DType to) {
  if (from == to) return bits;
  float value = std::bit_cast<float>(bits);
  if (from == DType::kBFloat16) value = BFloat16ToFloat(static_cast<uint16_t>(bits));
  if (from == DType::kFloat16) value = Float16ToFloat(static_cast<uint16_t>(bits));
  if (to == DType::kFloat32) return std::bit_cast<uint32_t>(value);
  return to == DType::kBFloat16 ? FloatToBFloat16(value) : FloatToFloat16(value);
}

// Applies the formula in packed_matrix.h to each element.
std::vector<std::byte> PlainPacked(const std::vector<SourceRow>& rows, int64_t num_columns, DType dtype) {
  const auto num_rows = static_cast<int64_t>(rows.size());
  const bool pairs = dtype == DType::kBFloat16;
  const int64_t stored = pairs ? (num_columns + 1) / 2 * 2 : num_columns;
  std::vector<std::byte> packed(static_cast<size_t>((num_rows + 15) / 16 * 16 * stored) * SizeOf(dtype));
  for (int64_t n = 0; n < num_rows; ++n) {
    const SourceRow& row = rows[static_cast<size_t>(n)];
    for (int64_t k = 0; k < num_columns; ++k) {
      const std::byte* from = row.data + static_cast<size_t>(k) * SizeOf(row.dtype);
      const uint32_t bits = Converted(BitsAt(from, row.dtype), row.dtype, dtype);
      const int64_t in_panel = pairs ? k / 2 * 32 + n % 16 * 2 + k % 2 : k * 16 + n % 16;
      const int64_t at = n / 16 * 16 * stored + in_panel;
      std::memcpy(packed.data() + static_cast<size_t>(at) * SizeOf(dtype), &bits, SizeOf(dtype));
    }
  }
  return packed;
}

class PackedMatrixTest : public testing::Test, protected testing_support::RandomValues {
 protected:
  PackedMatrixTest() : RandomValues(3) {}

  // Returns random bytes, so the elements may also be NaN, infinite or subnormal.
  std::vector<std::byte> Bytes(size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(Int(0, 255));
    return bytes;
  }
};

TEST_F(PackedMatrixTest, PackingAgreesWithThePlainLoopForAnySizeTypeAndOffset) {
  for (int round = 0; round < 1500; ++round) {
    const DType dtype = kTypes[static_cast<size_t>(round % 3)];
    const int64_t num_rows = Int(1, 50);
    const int64_t num_columns = round % 5 == 0 ? 64 * Int(1, 3) : Int(1, 200);
    const bool one_type = round % 2 == 0;
    const DType first_type = kTypes[static_cast<size_t>(Int(0, 2))];
    std::vector<std::vector<std::byte>> sources;
    std::vector<SourceRow> rows;
    for (int64_t n = 0; n < num_rows; ++n) {
      const DType type = one_type ? first_type : kTypes[static_cast<size_t>(Int(0, 2))];
      const auto offset = static_cast<size_t>(Int(0, 7));
      sources.push_back(Bytes(offset + static_cast<size_t>(num_columns) * SizeOf(type)));
      rows.push_back({sources.back().data() + offset, type});
    }
    PackedMatrix matrix(num_rows, num_columns, dtype);
    for (int64_t panel = 0; panel < matrix.view().num_panels(); ++panel) {
      const auto begin = static_cast<size_t>(panel * kPanelRows);
      matrix.PackPanel(panel, std::span(rows).subspan(begin, std::min<size_t>(kPanelRows, rows.size() - begin)));
    }
    const std::vector<std::byte> expected = PlainPacked(rows, num_columns, dtype);
    ASSERT_EQ(matrix.size_bytes(), expected.size());
    ASSERT_EQ(std::memcmp(matrix.view().data, expected.data(), expected.size()), 0)
        << num_rows << " x " << num_columns << " to " << ToString(dtype);
  }
}

TEST_F(PackedMatrixTest, PackRowsAgreesWithThePlainLoop) {
  for (int round = 0; round < 200; ++round) {
    const DType dtype = kTypes[static_cast<size_t>(round % 3)];
    const DType type = kTypes[static_cast<size_t>(Int(0, 2))];
    const int64_t num_rows = Int(1, 40);
    const int64_t num_columns = Int(1, 140);
    const auto stride = num_columns * static_cast<int64_t>(SizeOf(type)) + Int(0, 9);
    const std::vector<std::byte> source = Bytes(static_cast<size_t>(num_rows * stride));
    std::vector<SourceRow> rows;
    for (int64_t n = 0; n < num_rows; ++n) rows.push_back({source.data() + n * stride, type});
    PackedMatrix matrix(num_rows, num_columns, dtype);
    matrix.PackRows(source.data(), type, stride);
    const std::vector<std::byte> expected = PlainPacked(rows, num_columns, dtype);
    ASSERT_EQ(std::memcmp(matrix.view().data, expected.data(), expected.size()), 0);
  }
}

// The reference derives the scale from the largest magnitude, then rounds each value to the nearest code.
TEST_F(PackedMatrixTest, EightBitCodesAgreeWithThePlainLoop) {
  std::normal_distribution<float> normal(0.0f, 1.0f);
  for (int round = 0; round < 600; ++round) {
    const int64_t num_columns = Int(1, 300);
    std::vector<float> values(static_cast<size_t>(num_columns));
    const float size = std::ldexp(1.0f, static_cast<int>(Int(-40, 30)));
    for (float& value : values) value = normal(random_) * size;
    if (round % 3 == 0) {
      const std::array odd = {0.0f,
                              -0.0f,
                              std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::denorm_min(),
                              3e38f};
      for (int i = 0; i < 3; ++i) {
        values[static_cast<size_t>(Int(0, num_columns - 1))] = odd[static_cast<size_t>(Int(0, 6))];
      }
    }
    PackedQuantMatrix matrix(kInt8Form, 1, num_columns);
    matrix.QuantizeRow(*KernelsFor(Isa::kGeneric).quant, 0, values.data());
    const PackedQuantView& view = matrix.view();
    for (int64_t begin = 0; begin < num_columns; begin += view.scale_columns) {
      const int64_t end = std::min(begin + view.scale_columns, num_columns);
      float largest = 0.0f;
      for (int64_t k = begin; k < end; ++k) largest = std::max(largest, std::abs(values[static_cast<size_t>(k)]));
      const uint16_t scale = FloatToFloat16(largest / 127.0f);
      ASSERT_EQ(view.scales[begin / view.scale_columns * kPanelRows], scale);
      const float rounded = Float16ToFloat(scale);
      const float inverse = rounded > 0.0f && std::isfinite(rounded) ? 1.0f / rounded : 0.0f;
      for (int64_t k = begin; k < end; ++k) {
        const float code = std::nearbyintf(values[static_cast<size_t>(k)] * inverse);
        const int level = code >= -127.0f && code <= 127.0f ? static_cast<int>(code) : (code > 0.0f ? 127 : -127);
        const uint8_t stored = view.codes[k / kBlockColumns * view.block_bytes() + k % kBlockColumns / 4 * 64 + k % 4];
        ASSERT_EQ(stored, level + 128) << "column " << k << " of " << num_columns << ": "
                                       << values[static_cast<size_t>(k)];
      }
    }
  }
}

// Instruction sets use different algorithms to find the level of a value.
TEST_F(PackedMatrixTest, FourBitCodesAreTheSameOnEveryInstructionSet) {
  std::normal_distribution<float> normal(0.0f, 1.0f);
  for (int round = 0; round < 400; ++round) {
    std::vector<float> values(32);
    const float size = std::ldexp(1.0f, static_cast<int>(Int(-12, 12)));
    // Integers often fall on the thresholds between levels.
    for (float& value : values) value = round % 2 == 0 ? normal(random_) * size : static_cast<float>(Int(-127, 127));
    std::array<uint8_t, 18> expected{};
    KernelsFor(Isa::kGeneric).quant->quantize_iq4_nl(values.data(), 32, expected.data());
    for (const Isa isa : AvailableIsas()) {
      std::array<uint8_t, 18> stored{};
      KernelsFor(isa).quant->quantize_iq4_nl(values.data(), 32, stored.data());
      ASSERT_EQ(stored, expected) << ToString(isa) << " in round " << round;
    }
  }
}

uint64_t HashOf(const void* data, size_t size_bytes) { return XXH3_64bits(data, size_bytes); }

// Packed-weight files contain these bytes. If you change the bytes, increment kPackedLayoutVersion and update the
// hashes.
TEST(PackedLayoutTest, BytesChangeOnlyWithTheVersion) {
  constexpr int64_t kRows = 21;
  constexpr int64_t kColumns = 160;
  std::vector<float> values(static_cast<size_t>(kRows * kColumns));
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(state >> 8) - (1 << 23)) * 0x1p-23f;
  }
  std::vector<uint64_t> hashes;
  for (const DType dtype : kTypes) {
    PackedMatrix matrix(kRows, kColumns, dtype);
    matrix.PackRows(reinterpret_cast<const std::byte*>(values.data()), DType::kFloat32, kColumns * 4);
    hashes.push_back(HashOf(matrix.view().data, matrix.size_bytes()));
  }
  for (const PackedQuantForm& form : {kInt8Form, kInt4Form}) {
    PackedQuantMatrix matrix(form, kRows, kColumns);
    for (int64_t n = 0; n < kRows; ++n) {
      matrix.QuantizeRow(*KernelsFor(Isa::kGeneric).quant, n, values.data() + n * kColumns);
    }
    const PackedQuantView& view = matrix.view();
    hashes.push_back(
        HashOf(view.codes, static_cast<size_t>(view.num_panels() * view.num_blocks() * view.block_bytes())));
    hashes.push_back(HashOf(view.scales, static_cast<size_t>(view.num_panels() * view.num_scales() * kPanelRows) * 2));
  }
  for (const PackedQuantForm& form : {PackedQuantForm{6, 16, false, 32, nullptr, true}, PackedQuantForm{5, 32, true, 0},
                                      PackedQuantForm{4, 32, true, 0, nullptr, true}}) {
    PackedQuantMatrix matrix(form, 1, kColumns);
    std::vector<uint8_t> codes(static_cast<size_t>(kColumns));
    for (size_t k = 0; k < codes.size(); ++k) codes[k] = static_cast<uint8_t>(k * 37 % (1u << form.bits));
    std::vector<float> integers(codes.size());
    for (size_t k = 0; k < integers.size(); ++k) integers[k] = static_cast<float>(static_cast<int>(k * 29 % 256) - 128);
    const float* const scales = form.has_super_scales ? integers.data() : values.data();
    matrix.SetRow(0, {codes.data(), scales, scales + kColumns / 2, values.data(), values.data() + kColumns});
    const PackedQuantView& view = matrix.view();
    hashes.push_back(HashOf(view.codes, static_cast<size_t>(view.num_blocks() * view.block_bytes())));
    if (view.supers != nullptr) {
      hashes.push_back(HashOf(view.supers, static_cast<size_t>(view.num_supers() * view.super_bytes())));
      continue;
    }
    const auto scale_bytes = static_cast<size_t>(view.num_scales() * kPanelRows) * 2;
    hashes.push_back(HashOf(view.scales, scale_bytes));
    if (view.minimums != nullptr) hashes.push_back(HashOf(view.minimums, scale_bytes));
  }
  for (const QuantFormat format : {QuantFormat::kGroupUInt4, QuantFormat::kGroupUInt8}) {
    CheckpointQuantMatrix matrix(format, 2, 64, {.group_of_chunk = {0, 0, 0, 0}, .num_groups = 1});
    std::vector<uint8_t> codes(64);
    for (size_t k = 0; k < codes.size(); ++k) codes[k] = static_cast<uint8_t>(k * 37 % 16);
    for (int64_t n = 0; n < 2; ++n) matrix.SetCodes(n, codes.data());
    hashes.push_back(HashOf(matrix.view().data, static_cast<size_t>(2 * matrix.view().row_bytes)));
  }
  for (int type = 0; type <= static_cast<int>(kLastWeightType); ++type) {
    const std::optional<QuantFormat> format = BlockFormat(static_cast<WeightType>(type));
    if (!format) continue;
    CheckpointQuantMatrix matrix(*format, 1, BlockColumns(*format));
    const std::optional<PackedQuantForm> form = PackedFormOf(matrix.view());
    if (!form) continue;
    for (int64_t i = 0; i < matrix.view().row_bytes; ++i) matrix.row(0)[i] = static_cast<uint8_t>(i * 37);
    std::vector<uint8_t> codes(static_cast<size_t>(matrix.view().num_columns));
    std::vector<float> scales(codes.size()), minimums(codes.size());
    std::vector<float> super_scales(codes.size()), super_minimums(codes.size());
    ReadCodes(matrix.view(), *form, 0,
              {codes.data(), scales.data(), minimums.data(), super_scales.data(), super_minimums.data()});
    hashes.push_back(HashOf(codes.data(), codes.size()));
  }
  const std::vector<uint64_t> expected = {
      10020893022555620355u, 12733407118578748262u, 6380078650774659479u,  430444241419513647u,   5374023923134239147u,
      11545482421627993510u, 11973902208479453400u, 14018118233421836867u, 11951547542496491777u, 16542302129167251901u,
      11793534583055843678u, 11596602301398214853u, 1010822840068780673u,  8323181007578377499u,  6960099163562892539u,
      8147108138419966768u,  3842034931275942033u,  2307961160009781587u,  836417476882237040u,   5107676872531090929u,
      12577093274159269870u, 6670908913282647064u,  9819924330576871670u,  5039911150434400449u,  2307961160009781587u,
      12826193679677943898u};
  EXPECT_EQ(kPackedLayoutVersion, 6u);
  EXPECT_EQ(hashes, expected);
}

TEST(PackedMatrixBufferTest, AFilledMatrixKeepsItsContents) {
  const auto bytes = std::make_shared<std::vector<float>>(16 * 3, 2.5f);
  const auto filled = [&](const std::vector<size_t>& sizes) {
    std::vector<AlignedBuffer> buffers;
    for (const size_t size : sizes) buffers.emplace_back(bytes, bytes->data(), size);
    return buffers;
  };
  const PackedMatrix matrix(16, 3, DType::kFloat32, filled);
  EXPECT_TRUE(matrix.is_filled());
  EXPECT_EQ(matrix.view().data, bytes->data());
  std::array<float, 3> row{};
  matrix.UnpackRow(7, row.data());
  EXPECT_EQ(row, (std::array{2.5f, 2.5f, 2.5f}));
  EXPECT_FALSE(PackedMatrix(16, 3, DType::kFloat32).is_filled());
}

}  // namespace
}  // namespace vllm::kernels
