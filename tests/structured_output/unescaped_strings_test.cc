#include "engine/structured_output/json_schema/unescaped_strings.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/structured_output/json_schema/json_text.h"
#include "engine/structured_output/patterns/pattern.h"

namespace vllm {
namespace {

TEST(UnescapedStringsTest, TextsWhoseSpellingMatchesAreMatched) {
  RegexStore store;
  const RegexId strings = ParsePattern(store, "^[a\"\\\\\\n\\u0001\\u00e9\\u{1F600}]{1,3}$", PatternSyntax::kEcma,
                                       PatternMatch::kSearch, TextSpelling::kJsonString);
  const RegexId texts = UnescapedStrings(store, strings);
  for (const std::string text : {"a", "\"", "\\", "\n", "\x01", "é", "😀é\\", "\"a\n"}) {
    EXPECT_TRUE(store.Matches(texts, text)) << text;
  }
  for (const std::string text : {"", "b", "\\n", "\\\"a\"", "\\u0001", "\x02", "\xC3", "aaaa"}) {
    EXPECT_FALSE(store.Matches(texts, text)) << text;
  }
}

TEST(UnescapedStringsTest, ListsAndEverythingAndNothingKeepTheirTexts) {
  RegexStore store;
  const RegexId texts = UnescapedStrings(store, SpellingsOf(store, {"a\"b", "c"}));
  EXPECT_TRUE(store.Matches(texts, "a\"b"));
  EXPECT_TRUE(store.Matches(texts, "c"));
  EXPECT_FALSE(store.Matches(texts, "a\\\"b"));
  EXPECT_EQ(UnescapedStrings(store, AnyText(store, TextSpelling::kJsonString)), AnyText(store, TextSpelling::kUtf8));
  EXPECT_EQ(UnescapedStrings(store, RegexStore::kNothing), RegexStore::kNothing);
}

TEST(UnescapedStringsTest, TooManyStatesAreAnError) {
  RegexStore store;
  const RegexId strings =
      ParsePattern(store, "^a{20000}$", PatternSyntax::kEcma, PatternMatch::kSearch, TextSpelling::kJsonString);
  EXPECT_THROW(UnescapedStrings(store, strings), GrammarLimitError);
}

}  // namespace
}  // namespace vllm
