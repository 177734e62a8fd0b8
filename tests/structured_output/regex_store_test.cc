// Tests regular expressions over bytes, compared with obvious definitions of their operators.
#include "engine/structured_output/regex/regex_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/structured_output/regex/code_point_set.h"
#include "tests/support/temp_directory.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

// All texts of up to kMaxLength bytes from the alphabet "abc".
constexpr size_t kMaxLength = 5;

std::vector<std::string> AllTexts() {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == kMaxLength) break;
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  return texts;
}

using Language = std::set<std::string>;

Language Concatenation(const Language& a, const Language& b) {
  Language out;
  for (const std::string& x : a) {
    for (const std::string& y : b) {
      if (x.size() + y.size() <= kMaxLength) out.insert(x + y);
    }
  }
  return out;
}

struct Sample {
  RegexId id;
  Language texts;
};

// Makes a random expression and the set of its short texts.
Sample RandomRegex(RegexStore& store, std::mt19937_64& random, const Language& all, int depth) {
  const auto pick = [&](uint64_t n) { return random() % n; };
  if (depth == 0 || pick(6) == 0) {
    if (pick(8) == 0) return {RegexStore::kEmpty, {""}};
    ByteSet set;
    Language texts;
    for (const char c : {'a', 'b', 'c'}) {
      if (pick(2) == 0) continue;
      set.Add(static_cast<uint8_t>(c));
      texts.insert(std::string(1, c));
    }
    return {store.Bytes(set), texts};
  }
  const Sample x = RandomRegex(store, random, all, depth - 1);
  switch (pick(6)) {
    case 0: {
      const Sample y = RandomRegex(store, random, all, depth - 1);
      return {store.Concat(x.id, y.id), Concatenation(x.texts, y.texts)};
    }
    case 1: {
      const Sample y = RandomRegex(store, random, all, depth - 1);
      Language texts = x.texts;
      texts.insert(y.texts.begin(), y.texts.end());
      return {store.Or({x.id, y.id}), texts};
    }
    case 2: {
      const Sample y = RandomRegex(store, random, all, depth - 1);
      Language texts;
      std::ranges::set_intersection(x.texts, y.texts, std::inserter(texts, texts.end()));
      return {store.And({x.id, y.id}), texts};
    }
    case 3: {
      Language texts;
      std::ranges::set_difference(all, x.texts, std::inserter(texts, texts.end()));
      return {store.Not(x.id), texts};
    }
    default: {
      const auto min = static_cast<uint32_t>(pick(3));
      const bool is_bounded = pick(2) == 0;
      const auto max = min + static_cast<uint32_t>(pick(3));
      Language texts, power = {""};
      for (uint32_t count = 0; count <= (is_bounded ? max : min + kMaxLength); ++count) {
        if (count >= min) texts.insert(power.begin(), power.end());
        power = Concatenation(power, x.texts);
      }
      return {store.Repeat(x.id, min, is_bounded ? max : RegexStore::kUnbounded), texts};
    }
  }
}

TEST(RegexStoreTest, RandomExpressionsMatchTheTextsOfTheirDefinition) {
  const std::vector<std::string> all = AllTexts();
  const Language language(all.begin(), all.end());
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    RegexStore store;
    const Sample sample = RandomRegex(store, random, language, 4);
    for (const std::string& text : all) {
      ASSERT_EQ(store.Matches(sample.id, text), sample.texts.contains(text)) << "round " << round << ": " << text;
    }
    ASSERT_TRUE(sample.texts.empty() || !store.IsNothing(sample.id)) << "round " << round;
  }
}

TEST(RegexStoreTest, BytesOfOneGroupHaveTheSameDerivative) {
  const std::vector<std::string> all = AllTexts();
  const Language language(all.begin(), all.end());
  std::mt19937_64 random(8);
  size_t num_groups = 0;
  for (int i = 0; i < 500; ++i) {
    RegexStore store;
    const RegexId id = RandomRegex(store, random, language, 4).id;
    BytePartition partition(ByteSet::All());
    store.SplitByDerivative(id, partition);
    std::map<uint8_t, RegexId> derivatives;
    for (int byte = 0; byte < 256; ++byte) {
      const RegexId derivative = store.Derivative(id, static_cast<uint8_t>(byte));
      const auto [it, inserted] = derivatives.emplace(partition.GroupOf(static_cast<uint8_t>(byte)), derivative);
      ASSERT_EQ(it->second, derivative) << "byte " << byte;
    }
    ASSERT_EQ(derivatives.size(), partition.num_groups());
    num_groups += partition.num_groups();
  }
  EXPECT_GT(num_groups, 1000u);
}

TEST(RegexStoreTest, AnIntersectionWithoutTextsIsNothing) {
  RegexStore store;
  const RegexId a = store.Repeat(store.Literal("aa"), 1, RegexStore::kUnbounded);
  const RegexId odd = store.Concat(store.Literal("a"), store.Star(store.Literal("aa")));
  EXPECT_TRUE(store.IsNothing(store.And({a, odd})));
  EXPECT_FALSE(store.IsNothing(store.And({a, store.Not(odd)})));
}

// 10,000 times "b". Every byte is a class, so a search needs many steps for each state.
class RowAutomaton : public ByteAutomaton {
 public:
  static constexpr int32_t kLength = 10'000;
  int32_t Next(int32_t state, uint8_t byte) const override { return byte == 'b' && state < kLength ? state + 1 : -1; }
  bool IsFinal(int32_t state) const override { return state == kLength; }
  std::vector<ByteSet> ByteClasses() const override {
    std::vector<ByteSet> classes;
    for (int byte = 0; byte < 256; ++byte) {
      classes.push_back(ByteSet::Range(static_cast<uint8_t>(byte), static_cast<uint8_t>(byte)));
    }
    return classes;
  }
};

TEST(RegexStoreTest, TheLimitOfASearchDoesNotDependOnEarlierResults) {
  const std::string error = "the grammar needs too many steps to find out if it has a text (limit 1000000)";
  const auto row = [](RegexStore& store) {
    const RegexId other = store.Concat(store.Star(store.Literal("b")), store.Literal("c"));
    return store.And({store.Automaton(std::make_shared<const RowAutomaton>()), store.Not(other)});
  };
  RegexStore fresh;
  EXPECT_EQ(MessageOf<EmptinessLimitError>([&] { fresh.IsNothing(row(fresh)); }), error);
  // Results from the end backward, each of which could use the one before.
  RegexStore store;
  std::vector<RegexId> rests = {row(store)};
  for (int i = 0; i < RowAutomaton::kLength; ++i) rests.push_back(store.Derivative(rests.back(), 'b'));
  for (size_t i = rests.size() - 1; i > rests.size() - 1500; i -= 200) EXPECT_FALSE(store.IsNothing(rests[i])) << i;
  EXPECT_EQ(MessageOf<EmptinessLimitError>([&] { store.IsNothing(rests[0]); }), error);
}

TEST(RegexStoreTest, TheStepsToBuildAGrammarAreLimited) {
  const auto count = [](RegexStore& store) {
    store.LimitSteps(100);
    RegexId rest = store.Repeat(store.Literal("ab"), 1000, 1000);
    for (int i = 0; i < 101; ++i) rest = store.Derivative(store.Derivative(rest, 'a'), 'b');
    return store.MatchesEmpty(rest);
  };
  RegexStore store;
  EXPECT_EQ(MessageOf<GrammarLimitError>([&] { count(store); }),
            "the grammar needs too many steps to be built (limit 20000000)");
  store.FinishBuilding();
  RegexId rest = store.Repeat(store.Literal("cd"), 1000, 1000);
  for (int i = 0; i < 1000; ++i) rest = store.Derivative(store.Derivative(rest, 'c'), 'd');
  EXPECT_TRUE(store.MatchesEmpty(rest));
}

TEST(RegexStoreTest, AMissingByteShowsThatAnIntersectionHasNoText) {
  RegexStore store;
  // Ever more different derivatives, none of which has an x.
  const RegexId any = store.Bytes(ByteSet::Range('a', 'c'));
  std::vector<RegexId> operands = {store.Star(any)};
  for (const uint32_t n : {97u, 89u, 83u, 79u, 73u, 71u}) operands.push_back(store.Star(store.Repeat(any, n, n)));
  const RegexId without_x = store.And(operands);
  const RegexId with_x = store.Concat(std::array{RegexStore::kEverything, store.Literal("x"), RegexStore::kEverything});
  EXPECT_TRUE(store.IsNothing(store.And({store.Not(store.Literal("a")), without_x, with_x})));
  const RegexId with_b = store.Concat(std::array{RegexStore::kEverything, store.Literal("b"), RegexStore::kEverything});
  EXPECT_FALSE(store.IsNothing(store.And({store.Not(store.Literal("b")), store.Star(any), with_b})));
}

TEST(RegexStoreTest, CountsDoNotHideThatAnIntersectionHasNoText) {
  RegexStore store;
  // Their product has millions of states.
  const RegexId a = store.Literal("a");
  const RegexId x = store.Concat(store.Repeat(a, 1'000'000, 2'000'000), store.Literal("b"));
  const RegexId y = store.Concat(store.Repeat(a, 1'000'000, 3'000'000), store.Literal("c"));
  EXPECT_TRUE(store.IsNothing(store.And({x, y})));
}

TEST(RegexStoreTest, AnAlternativeThatIsHardToSearchDoesNotHideAnotherOne) {
  RegexStore store;
  const RegexId other = store.Concat(store.Star(store.Literal("b")), store.Literal("c"));
  const RegexId hard = store.And({store.Automaton(std::make_shared<const RowAutomaton>()), store.Not(other)});
  const RegexId easy = store.And({store.Literal("b"), store.Not(other)});
  EXPECT_FALSE(store.IsNothing(store.Or({hard, easy})));
  EXPECT_TRUE(store.IsNothing(store.Concat(hard, store.And({store.Literal("b"), store.Literal("c")}))));
}

TEST(RegexStoreTest, BoundedRepetitionsOutsideComplementsKeepTheirLeastCounts) {
  RegexStore store;
  const RegexId a = store.Literal("a"), b = store.Literal("b");
  EXPECT_EQ(store.WithBoundedRepetitions(store.Concat(store.Star(a), b), 3), store.Concat(store.Repeat(a, 0, 3), b));
  EXPECT_EQ(store.WithBoundedRepetitions(store.Repeat(a, 5, RegexStore::kUnbounded), 3), store.Repeat(a, 5, 5));
  EXPECT_EQ(store.WithBoundedRepetitions(store.Repeat(a, 0, 9), 3), store.Repeat(a, 0, 9));
  EXPECT_EQ(store.WithBoundedRepetitions(store.Not(store.Star(a)), 3), store.Not(store.Star(a)));
}

TEST(RegexStoreTest, OnlyTheEndOfASequenceBecomesEverything) {
  RegexStore store;
  const RegexId any = store.Star(store.Bytes(ByteSet::Range('a', 'c')));
  const RegexId a = store.Literal("a");
  const RegexId contains = store.Concat(std::vector<RegexId>{any, a, any});
  const RegexId loose = store.Concat(std::vector<RegexId>{any, a, RegexStore::kEverything});
  EXPECT_EQ(store.WithEverythingAtEnd(contains, any), loose);
  EXPECT_EQ(store.WithEverythingAtEnd(store.Not(contains), any), store.Not(loose));
  EXPECT_EQ(store.WithEverythingAtEnd(store.Concat(any, a), any), store.Concat(any, a));
  EXPECT_EQ(store.WithEverythingAtEnd(any, any), RegexStore::kEverything);
}

TEST(RegexStoreTest, EqualExpressionsHaveEqualIds) {
  RegexStore store;
  const RegexId a = store.Literal("a"), b = store.Literal("b");
  EXPECT_EQ(store.Or({a, b, a}), store.Or({b, a}));
  EXPECT_EQ(store.Concat(store.Concat(a, b), a), store.Concat(a, store.Concat(b, a)));
  EXPECT_EQ(store.Literal("aaa"), store.Repeat(a, 3, 3));
  EXPECT_EQ(store.Not(store.Not(a)), a);
}

TEST(RegexStoreTest, LongListsOfTextsAreStoredAsATree) {
  RegexStore store;
  std::vector<std::string> texts;
  for (int i = 0; i < 50'000; ++i) texts.push_back("value " + std::to_string(i * 7));
  const RegexId id = store.Literals(texts);
  EXPECT_LT(store.size(), 100'000u);
  EXPECT_TRUE(store.Matches(id, "value 349993"));
  EXPECT_FALSE(store.Matches(id, "value 349994"));
}

TEST(RegexStoreTest, LargeCountsNeedNoSpace) {
  RegexStore store;
  const RegexId id = store.Repeat(store.Literal("ab"), 1'000'000, 2'000'000);
  EXPECT_LT(store.size(), 20u);
  EXPECT_FALSE(store.Matches(id, "ab"));
}

TEST(RegexStoreTest, TruncateForgetsLaterExpressions) {
  RegexStore store;
  const RegexId a = store.Literal("abc");
  const size_t size = store.size();
  const RegexId later = store.Or({a, store.Literal("xyz"), store.Not(store.Literal("q"))});
  store.Truncate(size);
  EXPECT_EQ(store.size(), size);
  EXPECT_EQ(store.Or({a, store.Literal("xyz"), store.Not(store.Literal("q"))}), later);
  EXPECT_TRUE(store.Matches(later, "xyz"));
}

// Every code point is in the expression of a random set exactly if it is in the set.
TEST(CodePointSetTest, ExpressionsMatchTheEncodedCodePoints) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 20; ++round) {
    std::vector<CodePointRange> ranges;
    for (int i = 0; i < 3; ++i) {
      const auto first = static_cast<char32_t>(random() % (round % 2 == 0 ? 0x300 : 0x110000));
      ranges.push_back({first, std::min<char32_t>(CodePointSet::kMax, first + static_cast<char32_t>(random() % 5000))});
    }
    const CodePointSet set(ranges);
    RegexStore store;
    const RegexId utf8 = CodePointsAsRegex(store, set, TextSpelling::kUtf8);
    const RegexId json = CodePointsAsRegex(store, set, TextSpelling::kJsonString);
    for (char32_t c = 0; c <= CodePointSet::kMax; c += c < 0x900 ? 1 : 1 + static_cast<char32_t>(random() % 997)) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      std::string text;
      char buffer[32];
      text.assign(buffer, tokenizer::EncodeCodePoint(c, buffer));
      if (c > 0xFFFF) {
        std::snprintf(buffer, sizeof(buffer), "\\u%04x\\u%04X", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF));
      } else {
        std::snprintf(buffer, sizeof(buffer), "\\u%04X", static_cast<unsigned>(c));
      }
      ASSERT_EQ(store.Matches(utf8, text), set.Contains(c)) << static_cast<uint32_t>(c);
      const bool is_never_escaped = c < 0x80 && (std::isalnum(static_cast<int>(c)) != 0 || c == ' ');
      ASSERT_EQ(store.Matches(json, buffer), !is_never_escaped && set.Contains(c)) << static_cast<uint32_t>(c);
      const bool is_plain = c >= 0x20 && c != '"' && c != '\\';
      ASSERT_EQ(store.Matches(json, text), is_plain && set.Contains(c)) << static_cast<uint32_t>(c);
    }
  }
}

}  // namespace
}  // namespace vllm
