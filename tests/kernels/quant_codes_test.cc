// Compares the values that the codes, scales and minimums of ReadCodes represent with dequantized values, for every
// format that has a packed form.
#include "kernels/matrix/quant_codes.h"
#include "kernels/isa/kernels_for.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/kernels.h"
#include "tests/support/random_values.h"

namespace vllm::kernels {
namespace {

class QuantCodesTest : public testing::Test, protected testing_support::RandomValues {
 protected:
  QuantCodesTest() : RandomValues(17) {}

  void Fill(CheckpointQuantMatrix& matrix) {
    for (int64_t n = 0; n < matrix.num_rows(); ++n) {
      for (int64_t i = 0; i < matrix.view().row_bytes; ++i) matrix.row(n)[i] = static_cast<uint8_t>(Int(0, 255));
    }
  }
  // Checks that (level - zero) * scale + minimum, if finite, is the value that `dequantize` returns, up to float32
  // rounding.
  void ExpectSame(const CheckpointQuantMatrix& matrix) {
    const CheckpointQuantMatrixView& w = matrix.view();
    const std::optional<PackedQuantForm> form = PackedFormOf(w);
    ASSERT_TRUE(form);
    const auto columns = static_cast<size_t>(w.num_columns);
    std::vector<uint8_t> codes(columns);
    std::vector<float> scales(columns), minimums(columns), super_scales(columns), super_minimums(columns),
        expected(columns);
    PackedQuantMatrix packed(*form, w.num_rows, w.num_columns);
    std::vector<float> unpacked(columns);
    for (int64_t n = 0; n < w.num_rows; ++n) {
      ReadCodes(w, *form, n,
                {codes.data(), scales.data(), minimums.data(), super_scales.data(), super_minimums.data()});
      packed.SetRow(n, {codes.data(), scales.data(), minimums.data(), super_scales.data(), super_minimums.data()});
      packed.UnpackRow(n, unpacked.data());
      KernelsFor(Isa::kGeneric).quant->dequantize(w, n, 0, w.num_columns, expected.data());
      for (size_t k = 0; k < columns; ++k) {
        const size_t at = k / static_cast<size_t>(form->scale_columns);
        const int level = form->levels == nullptr ? codes[k] : form->levels[codes[k]];
        const size_t super = k / static_cast<size_t>(kSuperColumns);
        const float by = form->has_super_scales ? super_scales[super] : 1.0f;
        const float minimum_by = form->has_super_scales ? super_minimums[super] : 1.0f;
        const float minimum = form->has_minimums ? minimums[at] * minimum_by : 0.0f;
        const float scaled = static_cast<float>(level - form->zero) * (scales[at] * by);
        if (!std::isfinite(scaled + minimum)) continue;
        ASSERT_NEAR(scaled + minimum, expected[k], 1e-6f * (std::abs(scaled) + std::abs(minimum))) << n << " " << k;
        if (!form->has_super_scales) continue;
        ASSERT_EQ(unpacked[k], scaled + minimum) << n << " " << k;
      }
    }
  }
};

TEST_F(QuantCodesTest, BlockFormatsAgreeWithDequantize) {
  int with_form = 0;
  for (int type = 0; type <= static_cast<int>(kLastWeightType); ++type) {
    const std::optional<QuantFormat> format = BlockFormat(static_cast<WeightType>(type));
    if (!format) continue;
    CheckpointQuantMatrix matrix(*format, 40, BlockColumns(*format) * Int(1, 4));
    if (!PackedFormOf(matrix.view())) continue;
    ++with_form;
    Fill(matrix);
    ExpectSame(matrix);
  }
  EXPECT_EQ(with_form, 10);
}

TEST_F(QuantCodesTest, GroupFormatsAgreeWithDequantize) {
  for (int round = 0; round < 200; ++round) {
    const auto format = round % 2 == 0 ? QuantFormat::kGroupUInt4 : QuantFormat::kGroupUInt8;
    const int64_t columns = 32 * Int(1, 20);
    const int64_t run = round % 10 == 3 ? columns : 2 * Int(1, 8);  // chunks per group
    CheckpointQuantMatrix::Groups groups;
    groups.has_scale_per_input_row = round % 4 < 2;
    for (int64_t chunk = 0; chunk < columns / kGroupChunk; ++chunk) {
      groups.group_of_chunk.push_back(static_cast<int32_t>(chunk / run));
    }
    groups.num_groups = groups.group_of_chunk.back() + 1;
    groups.has_zeros = round % 3 == 0;
    groups.zero_point = round % 3 == 1 ? 7 : format == QuantFormat::kGroupUInt4 ? 8 : 128;
    CheckpointQuantMatrix matrix(format, 5, columns, groups);
    Fill(matrix);
    for (int64_t n = 0; n < 5; ++n) {
      for (int64_t g = 0; g < groups.num_groups; ++g) {
        const float scale = std::normal_distribution<float>()(random_);
        std::memcpy(matrix.scale(n, g), &scale, sizeof(scale));
        if (groups.has_zeros) *matrix.zero(n, g) = static_cast<int16_t>(Int(0, 16));
      }
    }
    ExpectSame(matrix);
  }
}

TEST_F(QuantCodesTest, InputsWithOneScaleNeedWeightsWithOneScalePerRow) {
  const auto scale_columns = [](const CheckpointQuantMatrix::Groups& groups, int64_t num_columns) {
    return PackedFormOf(CheckpointQuantMatrix(QuantFormat::kGroupUInt8, 1, num_columns, groups).view())->scale_columns;
  };
  const auto one_group = [](int64_t num_columns) {
    return CheckpointQuantMatrix::Groups{.group_of_chunk = std::vector<int32_t>(static_cast<size_t>(num_columns / 16)),
                                         .num_groups = 1,
                                         .zero_point = 128,
                                         .has_scale_per_input_row = true};
  };
  EXPECT_EQ(scale_columns(one_group(256), 256), kRowColumns);
  EXPECT_EQ(scale_columns(one_group(kRowColumns), kRowColumns), kRowColumns);
  EXPECT_EQ(scale_columns(one_group(kRowColumns + 32), kRowColumns + 32), kScaleColumns);
  CheckpointQuantMatrix::Groups groups = one_group(256);
  groups.has_scale_per_input_row = false;
  EXPECT_EQ(scale_columns(groups, 256), kScaleColumns);
  groups = one_group(256);
  groups.zero_point = 127;
  EXPECT_EQ(scale_columns(groups, 256), 32);
  groups = one_group(256);
  groups.num_groups = 2;
  for (size_t chunk = 8; chunk < 16; ++chunk) groups.group_of_chunk[chunk] = 1;
  EXPECT_EQ(scale_columns(groups, 256), kScaleColumns);
}

TEST_F(QuantCodesTest, FourBitGroupsOf128ColumnsKeepOneScale) {
  const auto form = [](int64_t group_columns, int32_t zero_point) {
    CheckpointQuantMatrix::Groups groups{
        .group_of_chunk = {}, .num_groups = 512 / group_columns, .zero_point = zero_point};
    for (int32_t column = 0; column < 512; column += 16) {
      groups.group_of_chunk.push_back(column / static_cast<int32_t>(group_columns));
    }
    return *PackedFormOf(CheckpointQuantMatrix(QuantFormat::kGroupUInt4, 1, 512, groups).view());
  };
  EXPECT_EQ(form(512, 8).scale_columns, 128);
  EXPECT_EQ(form(256, 8).scale_columns, 128);
  EXPECT_EQ(form(128, 8).scale_columns, 128);
  EXPECT_EQ(form(64, 8).scale_columns, 32);
  EXPECT_EQ(form(32, 8).scale_columns, 32);
  EXPECT_FALSE(form(128, 8).has_minimums);
  EXPECT_EQ(form(128, 7).scale_columns, 128);
  EXPECT_TRUE(form(128, 7).has_minimums);
}

TEST_F(QuantCodesTest, GroupsThatBeginInsideABlockAndFloat8HaveNoPackedForm) {
  const CheckpointQuantMatrix matrix(QuantFormat::kGroupUInt4, 1, 64,
                                     {.group_of_chunk = {0, 1, 1, 1}, .num_groups = 2});
  EXPECT_FALSE(PackedFormOf(matrix.view()));
  const CheckpointQuantMatrix floats(QuantFormat::kGroupFloat8, 1, 64,
                                     {.group_of_chunk = {0, 0, 0, 0}, .num_groups = 1});
  EXPECT_FALSE(PackedFormOf(floats.view()));
}

}  // namespace
}  // namespace vllm::kernels
