// Tests the kernels for checkpoint formats on every available instruction set: the exact values of every format,
// products compared with a plain loop, bit-identical results for any split of the work, and the error of IQ4_NL.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "kernels/isa/kernels_for.h"
#include "kernels/kernels.h"
#include "tests/support/random_values.h"

namespace vllm::kernels {
namespace {

struct StoredFormat {
  QuantFormat format;
  std::string name;
  std::vector<int> halves;  // byte offsets of the float16 values in a block
  bool IsBlocks() const { return format < QuantFormat::kGroupUInt4; }
};

std::vector<StoredFormat> Formats() {
  return {{QuantFormat::kQ8_0, "Q8_0", {0}},        {QuantFormat::kQ4_0, "Q4_0", {0}},
          {QuantFormat::kQ4_1, "Q4_1", {0, 2}},     {QuantFormat::kQ5_0, "Q5_0", {0}},
          {QuantFormat::kQ5_1, "Q5_1", {0, 2}},     {QuantFormat::kQ2_K, "Q2_K", {80, 82}},
          {QuantFormat::kQ3_K, "Q3_K", {108}},      {QuantFormat::kQ4_K, "Q4_K", {0, 2}},
          {QuantFormat::kQ5_K, "Q5_K", {0, 2}},     {QuantFormat::kQ6_K, "Q6_K", {208}},
          {QuantFormat::kIQ4_NL, "IQ4_NL", {0}},    {QuantFormat::kIQ4_XS, "IQ4_XS", {0}},
          {QuantFormat::kMXFP4, "MXFP4", {}},       {QuantFormat::kIQ1_S, "IQ1_S", {0}},
          {QuantFormat::kIQ1_M, "IQ1_M", {}},       {QuantFormat::kIQ2_XXS, "IQ2_XXS", {0}},
          {QuantFormat::kIQ2_XS, "IQ2_XS", {0}},    {QuantFormat::kIQ2_S, "IQ2_S", {0}},
          {QuantFormat::kIQ3_XXS, "IQ3_XXS", {0}},  {QuantFormat::kIQ3_S, "IQ3_S", {0}},
          {QuantFormat::kTQ1_0, "TQ1_0", {52}},     {QuantFormat::kTQ2_0, "TQ2_0", {64}},
          {QuantFormat::kNVFP4, "NVFP4", {}},       {QuantFormat::kGroupUInt4, "UInt4", {}},
          {QuantFormat::kGroupUInt8, "UInt8", {}},  {QuantFormat::kGroupFloat8, "Float8", {}},
          {QuantFormat::kGroupTable4, "Table4", {}}};
}

class QuantKernelsTest : public testing::TestWithParam<Isa>, protected testing_support::RandomValues {
 protected:
  QuantKernelsTest() : RandomValues(11) {}

  const QuantKernels& kernels() const { return *KernelsFor(GetParam()).quant; }

  CheckpointQuantMatrix RandomMatrix(const StoredFormat& stored, int64_t rows, int64_t columns) {
    const int64_t block = BlockColumns(stored.format);
    if (stored.IsBlocks()) {
      CheckpointQuantMatrix w(stored.format, rows, columns);
      for (int64_t n = 0; n < rows; ++n) {
        for (int64_t i = 0; i < w.view().row_bytes; ++i) w.row(n)[i] = static_cast<uint8_t>(Int(0, 255));
        const int64_t bytes = QuantRowBytes(stored.format, block);
        for (int64_t b = 0; b < columns / block; ++b) {
          if (stored.format == QuantFormat::kMXFP4) w.row(n)[b * bytes] = static_cast<uint8_t>(Int(118, 126));
          // The top bits of the scale, which is not in one place: a number from 2^-7 to 2^-4.
          if (stored.format == QuantFormat::kIQ1_M) {
            w.row(n)[b * bytes + 55] = static_cast<uint8_t>((w.row(n)[b * bytes + 55] & 0x0f) | 0x20);
          }
          for (const int offset : stored.halves) {
            const uint16_t half = FloatToFloat16(Floats(1, 0.05f)[0]);
            std::memcpy(w.row(n) + b * bytes + offset, &half, 2);
          }
        }
      }
      return w;
    }
    CheckpointQuantMatrix::Groups groups;
    groups.num_groups = Int(1, columns / 16);
    for (int64_t i = 0; i < columns / 16; ++i) {
      groups.group_of_chunk.push_back(static_cast<int32_t>(Int(0, groups.num_groups - 1)));
    }
    groups.scale_type = static_cast<DType>(Int(0, 2));
    const bool allows_zeros = stored.format == QuantFormat::kGroupUInt4 || stored.format == QuantFormat::kGroupUInt8;
    groups.has_zeros = allows_zeros && Int(0, 1) == 1;
    groups.has_float_zeros = allows_zeros && !groups.has_zeros && Int(0, 1) == 1;
    if (stored.format == QuantFormat::kGroupTable4) groups.table = Floats(16);
    if (Int(0, 1) == 1) groups.scale_table = Floats(256, 0.05f);
    groups.zero_point = 7;
    CheckpointQuantMatrix w(stored.format, rows, columns, groups);
    for (int64_t n = 0; n < rows; ++n) {
      std::vector<uint8_t> codes(static_cast<size_t>(columns));
      for (uint8_t& code : codes) {
        code = static_cast<uint8_t>(Int(0, 255));
        if (stored.format == QuantFormat::kGroupFloat8 && (code & 0x7f) == 0x7f) code = 0;
      }
      w.SetCodes(n, codes.data());
      for (int64_t g = 0; g < groups.num_groups; ++g) {
        if (groups.has_float_zeros) *w.float_zero(n, g) = Floats(1, 20.0f)[0];
        if (!groups.scale_table.empty()) {
          *w.scale(n, g) = static_cast<std::byte>(Int(0, 255));
          continue;
        }
        const float scale = Floats(1, 0.05f)[0];
        const uint16_t half = groups.scale_type == DType::kFloat16 ? FloatToFloat16(scale) : FloatToBFloat16(scale);
        std::memcpy(
            w.scale(n, g),
            groups.scale_type == DType::kFloat32 ? static_cast<const void*>(&scale) : static_cast<const void*>(&half),
            SizeOf(groups.scale_type));
        if (groups.has_zeros) *w.zero(n, g) = static_cast<int16_t>(Int(0, 256));
      }
    }
    return w;
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, QuantKernelsTest, testing::ValuesIn(AvailableIsas()),
                         [](const auto& isa) { return std::string(ToString(isa.param)); });

TEST_P(QuantKernelsTest, BlocksDequantizeExactlyLikeTheGgufPackage) {
  for (const StoredFormat& stored : Formats()) {
    if (!stored.IsBlocks()) continue;
    std::ifstream file(std::string(VLLMCLI_TEST_DATA) + "/quant/blocks/" + stored.name + ".bin", std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ASSERT_GE(bytes.size(), 4u) << stored.name;
    uint32_t count;
    std::memcpy(&count, bytes.data(), 4);
    CheckpointQuantMatrix w(stored.format, 1, count);
    ASSERT_EQ(bytes.size(), 4 + static_cast<size_t>(w.view().row_bytes) + count * sizeof(float));
    std::memcpy(w.row(0), bytes.data() + 4, static_cast<size_t>(w.view().row_bytes));
    std::vector<float> expected(count), got(count);
    std::memcpy(expected.data(), bytes.data() + 4 + w.view().row_bytes, count * sizeof(float));
    kernels().dequantize(w.view(), 0, 0, count, got.data());
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected[i])) << stored.name << " value " << i;
    }
  }
}

TEST_P(QuantKernelsTest, GroupsDequantizeAsDefined) {
  for (const QuantFormat format : {QuantFormat::kGroupUInt4, QuantFormat::kGroupUInt8}) {
    CheckpointQuantMatrix w(format, 1, 32, {{1, 0}, 2, DType::kFloat32, true, 0});
    std::vector<uint8_t> codes(32);
    for (size_t k = 0; k < 32; ++k)
      codes[k] = static_cast<uint8_t>(format == QuantFormat::kGroupUInt4 ? k % 16 : 8 * k);
    w.SetCodes(0, codes.data());
    const float scales[2] = {0.1f, -3.0f};
    std::memcpy(w.scale(0, 0), scales, sizeof(scales));
    *w.zero(0, 0) = 3;
    *w.zero(0, 1) = 256;
    std::vector<float> got(32);
    kernels().dequantize(w.view(), 0, 0, 32, got.data());
    for (size_t k = 0; k < 32; ++k) {
      const size_t g = k < 16 ? 1 : 0;
      EXPECT_EQ(got[k], static_cast<float>(codes[k] - *w.zero(0, static_cast<int64_t>(g))) * scales[g]);
    }
  }
}

TEST_P(QuantKernelsTest, TablesOfValuesAndScalesAreLookedUp) {
  CheckpointQuantMatrix::Groups groups{.group_of_chunk = {0, 1}, .num_groups = 2};
  groups.table = Floats(16);
  groups.scale_table = Floats(256);
  CheckpointQuantMatrix w(QuantFormat::kGroupTable4, 1, 32, groups);
  std::vector<uint8_t> codes(32);
  for (size_t k = 0; k < 32; ++k) codes[k] = static_cast<uint8_t>(5 * k % 16);
  w.SetCodes(0, codes.data());
  *w.scale(0, 0) = std::byte{3};
  *w.scale(0, 1) = std::byte{255};
  std::vector<float> got(32);
  kernels().dequantize(w.view(), 0, 0, 32, got.data());
  for (size_t k = 0; k < 32; ++k) EXPECT_EQ(got[k], groups.table[codes[k]] * groups.scale_table[k < 16 ? 3 : 255]);
}

TEST_P(QuantKernelsTest, ZeroPointsMayBeFractions) {
  CheckpointQuantMatrix::Groups groups{.group_of_chunk = {0, 0}, .num_groups = 1};
  groups.has_float_zeros = true;
  CheckpointQuantMatrix w(QuantFormat::kGroupUInt8, 1, 32, groups);
  std::vector<uint8_t> codes(32);
  for (size_t k = 0; k < 32; ++k) codes[k] = static_cast<uint8_t>(8 * k);
  w.SetCodes(0, codes.data());
  const float scale = 0.1f;
  std::memcpy(w.scale(0, 0), &scale, sizeof(scale));
  *w.float_zero(0, 0) = 7.3f;
  std::vector<float> got(32);
  kernels().dequantize(w.view(), 0, 0, 32, got.data());
  for (size_t k = 0; k < 32; ++k) EXPECT_EQ(got[k], (static_cast<float>(codes[k]) - 7.3f) * scale);
}

TEST_P(QuantKernelsTest, Float8DequantizesAsDefined) {
  CheckpointQuantMatrix w(QuantFormat::kGroupFloat8, 1, 256,
                          {std::vector<int32_t>(16, 0), 1, DType::kFloat32, false, 0});
  std::vector<uint8_t> codes(256);
  for (size_t k = 0; k < 256; ++k) codes[k] = static_cast<uint8_t>(k);
  w.SetCodes(0, codes.data());
  const float one = 1.0f;
  std::memcpy(w.scale(0, 0), &one, sizeof(one));
  std::vector<float> got(256);
  kernels().dequantize(w.view(), 0, 0, 256, got.data());
  for (size_t k = 0; k < 256; ++k) {
    const size_t exponent = (k >> 3) & 15, mantissa = k & 7;
    if (exponent == 15 && mantissa == 7) {
      EXPECT_TRUE(std::isnan(got[k]));
      continue;
    }
    const double magnitude = exponent == 0
                                 ? std::ldexp(static_cast<double>(mantissa), -9)
                                 : std::ldexp(8.0 + static_cast<double>(mantissa), static_cast<int>(exponent) - 10);
    EXPECT_EQ(got[k], static_cast<float>(k >= 128 ? -magnitude : magnitude)) << k;
  }
}

TEST_P(QuantKernelsTest, LinearAgreesWithThePlainLoop) {
  for (const StoredFormat& stored : Formats()) {
    for (int round = 0; round < 12; ++round) {
      const int64_t block = BlockColumns(stored.format);
      const int64_t in = block * (round % 4 == 0 ? Int(1024 / block, 2600 / block) : Int(1, 512 / block));
      const int64_t num_rows = Int(0, 11), out = Int(1, 21);
      const int64_t x_stride = in + Int(0, 5), y_stride = out + Int(0, 5);
      const std::vector<float> x = Floats(num_rows * x_stride + 1), bias = Floats(out);
      const CheckpointQuantMatrix w = RandomMatrix(stored, out, in);
      std::vector<float> y(static_cast<size_t>(num_rows * y_stride + 1), -77.0f);
      kernels().linear(x.data(), x_stride, num_rows, w.view(), round % 2 == 0 ? bias.data() : nullptr, y.data(),
                       y_stride, 0, out);
      std::vector<float> row(static_cast<size_t>(in));
      for (int64_t n = 0; n < out; ++n) {
        KernelsFor(Isa::kGeneric).quant->dequantize(w.view(), n, 0, in, row.data());
        for (int64_t r = 0; r < num_rows; ++r) {
          double sum = round % 2 == 0 ? bias[static_cast<size_t>(n)] : 0.0, magnitude = 1.0;
          for (int64_t k = 0; k < in; ++k) {
            const double product =
                static_cast<double>(x[static_cast<size_t>(r * x_stride + k)]) * row[static_cast<size_t>(k)];
            sum += product;
            magnitude += std::abs(product);
          }
          ASSERT_NEAR(y[static_cast<size_t>(r * y_stride + n)], sum, magnitude * 1e-6) << stored.name << " " << in;
        }
      }
      for (int64_t r = 0; r < num_rows; ++r) {
        for (int64_t n = out; n < y_stride; ++n) ASSERT_EQ(y[static_cast<size_t>(r * y_stride + n)], -77.0f);
      }
    }
  }
}

TEST_P(QuantKernelsTest, LinearIsBitIdenticalForAnyNumberOfRowsAndSplitOfTheMatrix) {
  for (const StoredFormat& stored : Formats()) {
    const int64_t out = 37, in = 256 * 9, num_rows = 13;
    const std::vector<float> x = Floats(num_rows * in), bias = Floats(out);
    const CheckpointQuantMatrix w = RandomMatrix(stored, out, in);
    std::vector<float> all(static_cast<size_t>(num_rows * out));
    kernels().linear(x.data(), in, num_rows, w.view(), bias.data(), all.data(), out, 0, out);
    for (int round = 0; round < 10; ++round) {
      const int64_t first = Int(0, num_rows - 1);
      const int64_t count = round % 2 == 0 ? 1 : Int(1, num_rows - first);
      std::vector<float> some(static_cast<size_t>(count * out));
      for (int64_t n = 0; n < out;) {
        const int64_t end = std::min(out, n + Int(1, 20));
        kernels().linear(x.data() + first * in, in, count, w.view(), bias.data(), some.data(), out, n, end);
        n = end;
      }
      for (int64_t i = 0; i < count * out; ++i) {
        ASSERT_EQ(some[static_cast<size_t>(i)], all[static_cast<size_t>(first * out + i)]) << stored.name;
      }
    }
  }
}

TEST_P(QuantKernelsTest, IQ4NLStoresZerosAndSinglePeaksWithinOnePercent) {
  for (const float peak : {0.0f, 1.0f, -1.0f, 0.01f, -3e4f}) {
    std::vector<float> x(32, 0.0f), back(32);
    x[17] = peak;
    CheckpointQuantMatrix w(QuantFormat::kIQ4_NL, 1, 32);
    kernels().quantize_iq4_nl(x.data(), 32, w.row(0));
    kernels().dequantize(w.view(), 0, 0, 32, back.data());
    for (size_t i = 0; i < 32; ++i) EXPECT_NEAR(back[i], x[i], std::abs(peak) * 0.01) << i;
  }
}

TEST_P(QuantKernelsTest, NonFiniteValuesAffectOnlyTheirIQ4NLBlock) {
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    std::vector<float> x(64, 1.0f), back(64);
    x[3] = bad;
    CheckpointQuantMatrix w(QuantFormat::kIQ4_NL, 1, 64);
    kernels().quantize_iq4_nl(x.data(), 64, w.row(0));
    kernels().dequantize(w.view(), 0, 0, 64, back.data());
    for (size_t i = 32; i < 64; ++i) EXPECT_NEAR(back[i], 1.0f, 0.01);
  }
}

TEST_P(QuantKernelsTest, IQ4NLRmsErrorOfGaussianWeightsIsBelowEightPercent) {
  const int64_t count = 32 * 256;
  const std::vector<float> x = Floats(count, 0.02f);
  CheckpointQuantMatrix w(QuantFormat::kIQ4_NL, 1, count);
  kernels().quantize_iq4_nl(x.data(), count, w.row(0));
  std::vector<float> back(x.size());
  kernels().dequantize(w.view(), 0, 0, count, back.data());
  double error = 0.0, power = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (back[i] - x[i]) * (back[i] - x[i]);
    power += x[i] * x[i];
  }
  EXPECT_LT(std::sqrt(error / power), 0.08);
}

}  // namespace
}  // namespace vllm::kernels
