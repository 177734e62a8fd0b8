// Tests how the tokens of a vocabulary are sorted.
#include "engine/structured_output/matcher/token_slices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace vllm {
namespace {

using Ids = std::vector<int32_t>;

Ids Sorted(std::span<const int32_t> ids) {
  Ids sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

Ids IdsOf(const TokenBitmask& mask) {
  Ids ids;
  for (size_t id = 0; id < mask.size() * 32; ++id) {
    if ((mask[id / 32] >> (id % 32) & 1) != 0) ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

TEST(TokenSlicesTest, PlainTokensAreThoseThatBeginAPlainText) {
  const std::vector<std::string> tokens = {"a", "", "\"", "é", "\xC3", "\xA9", "a\n", "\xED\xA0", "\x7F", "ab\xF0\x9F"};
  const TokenSlices slices(tokens, 40);
  EXPECT_EQ(IdsOf(slices.PlainMask()), (Ids{0, 3, 4, 9}));
  EXPECT_EQ(Sorted(slices.plain().tokens()), (Ids{0, 3, 4, 9}));
  EXPECT_EQ(Sorted(slices.rest().tokens()), (Ids{2, 5, 6, 7, 8}));
}

TEST(TokenSlicesTest, IncompleteCharactersCount) {
  const std::vector<std::string> tokens = {"a", "é", "\xC3", "aé", "a\xC3", "aaa"};
  const TokenSlices slices(tokens, 6);
  EXPECT_EQ(IdsOf(slices.PlainMask(0)), Ids());
  EXPECT_EQ(IdsOf(slices.PlainMask(1)), (Ids{0, 1, 2}));
  EXPECT_EQ(IdsOf(slices.PlainMask(2)), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(IdsOf(slices.PlainMask(3)), (Ids{0, 1, 2, 3, 4, 5}));
}

TEST(TokenSlicesTest, SuffixesBeginAfterTheLastPlainCharacter) {
  const std::vector<std::string> tokens = {"\"", "é\",", "b\"", "a\xC3\"", "bb"};
  const TokenSlices slices(tokens, 5);
  EXPECT_EQ(Sorted(slices.Suffixes(0).tokens()), Ids{0});
  EXPECT_EQ(Sorted(slices.Suffixes(1).tokens()), (Ids{1, 2, 3}));
  EXPECT_EQ(slices.Suffixes(1).nodes()[0].byte, '"');
  EXPECT_EQ(slices.Suffixes(1).nodes()[1].byte, ',');
  EXPECT_EQ(slices.Suffixes(1).nodes()[2].byte, 0xC3);
  EXPECT_TRUE(slices.Suffixes(2).nodes().empty());
}

TEST(TokenSlicesTest, TokensOfManyCharactersAreLong) {
  const std::string limit(TokenSlices::kMaxCharacters, 'x');
  const std::vector<std::string> tokens = {limit, limit + "x", limit + "\n", limit + "x\n"};
  const TokenSlices slices(tokens, 4);
  EXPECT_EQ(IdsOf(slices.PlainMask(TokenSlices::kMaxCharacters)), Ids{0});
  EXPECT_EQ(Sorted(slices.Suffixes(TokenSlices::kMaxCharacters).tokens()), Ids{2});
  EXPECT_EQ(Sorted(slices.long_tokens().tokens()), (Ids{1, 3}));
}

TEST(TokenSlicesTest, TokensOfEqualBytesAreAllFound) {
  const std::vector<std::string> tokens = {"ab", "a", "ab", "abc"};
  const TokenSlices slices(tokens, 4);
  EXPECT_EQ(slices.plain().nodes().size(), 3u);
  EXPECT_EQ(Sorted(slices.plain().TokensOf(1)), (Ids{0, 2}));
  EXPECT_EQ(Sorted(slices.plain().TokensBelow(1)), (Ids{0, 2, 3}));
}

}  // namespace
}  // namespace vllm
