#include "app/cli/parse_value.h"

#include <gtest/gtest.h>

#include "engine/config/errors.h"

namespace vllm::app {
namespace {

TEST(ParseValueTest, SizeSuffixesArePowersOf1000Or1024) {
  EXPECT_EQ(ParseSize("123"), 123);
  EXPECT_EQ(ParseSize("2K"), 2000);
  EXPECT_EQ(ParseSize("3M"), 3000000);
  EXPECT_EQ(ParseSize("1.5G"), 1500000000);
  EXPECT_EQ(ParseSize("2Ki"), 2048);
  EXPECT_EQ(ParseSize("512Mi"), 512LL << 20);
  EXPECT_EQ(ParseSize("4GiB"), 4LL << 30);
}

TEST(ParseValueTest, InvalidSizesAreRejected) {
  for (const char* text : {"", "K", "-1", "i", "1i", "1X", "1e400", "nan", "1 K", "99999999999T"}) {
    EXPECT_THROW(ParseSize(text), ConfigError) << text;
  }
}

TEST(ParseValueTest, NumbersMustBeWellFormedAndFinite) {
  for (const char* text : {"nan", "NaN", "inf", "-inf", "infinity", "1e999", "", "1x", " 1"}) {
    EXPECT_THROW(ParseNumber(text), ConfigError) << text;
  }
  EXPECT_EQ(ParseNumber("0.5"), 0.5);
  EXPECT_EQ(ParseNumber("-2"), -2.0);
  EXPECT_EQ(ParseNumber("+1"), 1.0);
}

TEST(ParseValueTest, IntegersMustBeWholeAndFitTheirType) {
  EXPECT_EQ(ParseInteger("-9223372036854775808"), INT64_MIN);
  EXPECT_THROW(ParseInteger("9223372036854775808"), ConfigError);
  EXPECT_THROW(ParseInteger("1.0"), ConfigError);
  EXPECT_THROW(ParseUnsigned("-1"), ConfigError);
}

TEST(ParseValueTest, IdsAreSeparatedByCommas) {
  std::vector<int32_t> ids;
  ParseIds("[1, 2,3]", ids);
  ParseIds("4", ids);
  ParseIds("[]", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_THROW(ParseIds("1,,2", ids), ConfigError);
  EXPECT_THROW(ParseIds("2147483648", ids), ConfigError);
}

TEST(ParseValueTest, BiasHasTheFormIdEqualsValue) {
  EXPECT_EQ(ParseBias("5=-1.5"), (std::pair<int32_t, float>{5, -1.5F}));
  EXPECT_THROW(ParseBias("5"), ConfigError);
  EXPECT_THROW(ParseBias("5=nan"), ConfigError);
}

TEST(ParseValueTest, NearestNameCorrectsAMisspelledName) {
  const std::vector<std::string> names = {"top-p", "top-k", "temperature"};
  EXPECT_EQ(NearestName("temprature", names), "temperature");
  EXPECT_EQ(NearestName("topp", names), "top-p");
  EXPECT_EQ(NearestName("quantum", names), "");
  EXPECT_EQ(NearestName("--tmeperatrue", {"--top-p", "--temperature"}), "--temperature");
  EXPECT_EQ(NearestName("rnu", {"run"}), "run");
}

TEST(ParseValueTest, ANameThatIsNotCloseGetsNoSuggestion) {
  const std::vector<std::string> names = {"chat", "run", "batch", "bench", "show", "--seed", "/set", "/show", "--n"};
  for (const char* name : {"pull", "rm", "cat2x", "serve", "-x", "--x", "--sed1x", "/x", "", "--", "list"}) {
    EXPECT_EQ(NearestName(name, names), "") << name;
  }
}

}  // namespace
}  // namespace vllm::app
