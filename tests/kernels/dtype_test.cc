#include "kernels/matrix/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace vllm::kernels {
namespace {

// Computes the value of a float16 from its definition.
double HalfByDefinition(uint16_t bits) {
  int exponent = (bits >> 10) & 31;
  double fraction = bits & 1023;
  double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(DTypeTest, EveryFloat16ConvertsToItsValueAndBack) {
  for (uint32_t i = 0; i < 65536; ++i) {
    uint16_t bits = static_cast<uint16_t>(i);
    float value = Float16ToFloat(bits);
    if (std::isnan(HalfByDefinition(bits))) {
      EXPECT_TRUE(std::isnan(value)) << i;
      EXPECT_TRUE(std::isnan(Float16ToFloat(FloatToFloat16(value)))) << i;
      continue;
    }
    EXPECT_EQ(static_cast<double>(value), HalfByDefinition(bits)) << i;
    EXPECT_EQ(FloatToFloat16(value), bits) << i;
  }
}

TEST(DTypeTest, FloatsRoundToTheNearestFloat16AndTiesToEven) {
  for (uint32_t i = 0; i < 0x7bff; ++i) {
    double low = HalfByDefinition(static_cast<uint16_t>(i));
    double high = HalfByDefinition(static_cast<uint16_t>(i + 1));
    float middle = static_cast<float>((low + high) / 2);
    EXPECT_EQ(FloatToFloat16(middle), i % 2 == 0 ? i : i + 1) << i;
    EXPECT_EQ(FloatToFloat16(std::nextafterf(middle, 0.0f)), i) << i;
    EXPECT_EQ(FloatToFloat16(std::nextafterf(middle, 1e9f)), i + 1) << i;
    EXPECT_EQ(FloatToFloat16(-std::nextafterf(middle, 1e9f)), 0x8000 | (i + 1)) << i;
  }
  EXPECT_EQ(FloatToFloat16(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToFloat16(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToFloat16(3e38f), 0x7c00);
  EXPECT_EQ(FloatToFloat16(1e-30f), 0);
}

TEST(DTypeTest, EveryBFloat16ConvertsToFloatAndBack) {
  for (uint32_t i = 0; i < 65536; ++i) {
    uint16_t bits = static_cast<uint16_t>(i);
    float value = BFloat16ToFloat(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(value)))) << i;
    } else {
      EXPECT_EQ(FloatToBFloat16(value), bits) << i;
    }
  }
}

TEST(DTypeTest, FloatsRoundToTheNearestBFloat16AndTiesToEven) {
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    uint32_t bits = static_cast<uint32_t>(random());
    float value = std::bit_cast<float>(bits);
    if (!(std::abs(value) < 3e38f)) continue;  // NaN, infinite, or may round to infinity
    double down = static_cast<double>(BFloat16ToFloat(static_cast<uint16_t>(bits >> 16)));
    double got = static_cast<double>(BFloat16ToFloat(FloatToBFloat16(value)));
    double up = static_cast<double>(std::bit_cast<float>((bits & 0xffff0000u) + 0x10000u));
    double exact = static_cast<double>(value);
    EXPECT_LE(std::abs(got - exact), std::min(std::abs(down - exact), std::abs(up - exact)));
  }
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace vllm::kernels
