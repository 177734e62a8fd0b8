// Tests the matcher on random grammars, compared with the slow one, and its limits.
#include "engine/structured_output/matcher/grammar_automaton.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/structured_output/random_grammar.h"
#include "tests/structured_output/slow_matcher.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using testing_support::kFirstSpecial;
using testing_support::kLastSpecial;
using testing_support::RandomGrammar;
using testing_support::SlowMatcher;
using Position = GrammarAutomaton::Position;

std::shared_ptr<const VocabTrie> NoVocabulary() {
  return std::make_shared<const VocabTrie>(std::vector<std::string>(), 0);
}

Grammar GrammarOfSeed(uint64_t seed) {
  std::mt19937_64 random(seed);
  return RandomGrammar([&](uint64_t n) { return random() % n; });
}

// A rule for each of the grammars below: the rules are `start` and what `add` adds.
template <typename Add>
GrammarAutomaton Automaton(Add add) {
  GrammarBuilder builder;
  const SymbolId start = builder.AddRule();
  add(builder, start);
  return GrammarAutomaton(builder.Finish(start), NoVocabulary());
}

SymbolId Text(GrammarBuilder& builder, const char* text) {
  return builder.AddTerminal(builder.regexes().Literal(text));
}

bool Accepts(GrammarAutomaton& automaton, std::string_view text) {
  Position position;
  return automaton.Advance(position, text) && automaton.MayEnd(position);
}

TEST(GrammarAutomatonTest, RandomGrammarsAgreeWithTheSlowMatcher) {
  size_t num_accepted = 0, num_special = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SlowMatcher slow(GrammarOfSeed(seed));
    GrammarAutomaton fast(GrammarOfSeed(seed), NoVocabulary());
    std::mt19937_64 random(seed);
    for (int round = 0; round < 6; ++round) {
      Position position;
      slow.Start();
      ASSERT_EQ(fast.MayEnd(position), slow.MayEnd()) << "seed " << seed;
      for (int i = 0; i < 10; ++i) {
        bool is_allowed = false;
        if (random() % 8 == 0) {
          const auto id = static_cast<int32_t>(random() % (kLastSpecial + 2));
          is_allowed = fast.AdvanceToken(position, id);
          ASSERT_EQ(is_allowed, slow.StepToken(id))
              << "seed " << seed << ": token " << id << " after " << position.text;
          num_special += is_allowed ? 1 : 0;
        } else {
          const char byte = random() % 16 == 0 ? 'd' : static_cast<char>('a' + random() % 3);
          is_allowed = fast.Advance(position, std::string_view(&byte, 1));
          ASSERT_EQ(is_allowed, slow.Step(static_cast<uint8_t>(byte)))
              << "seed " << seed << ": " << position.text << byte;
        }
        if (!is_allowed) break;
        ASSERT_EQ(fast.MayEnd(position), slow.MayEnd()) << "seed " << seed << ": " << position.text;
        num_accepted += fast.MayEnd(position) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(num_accepted, 6000u);
  EXPECT_GT(num_special, 200u);
}

// A random vocabulary of texts over a, b and c, where some tokens are equal, and special tokens.
TEST(GrammarAutomatonTest, MasksOfRandomGrammarsAgreeWithTheSlowMatcher) {
  size_t num_allowed = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::string> tokens(kLastSpecial + 2);
    while (tokens.size() < 48) {
      std::string token;
      for (uint64_t i = 0, length = 1 + random() % 5; i < length; ++i) token.push_back("aabbc\"\x80\xFF"[random() % 8]);
      tokens.push_back(token);
    }
    SlowMatcher slow(GrammarOfSeed(seed));
    const auto num_tokens = static_cast<int32_t>(tokens.size());
    GrammarAutomaton fast(GrammarOfSeed(seed), std::make_shared<const VocabTrie>(tokens, num_tokens + 5));
    std::vector<int32_t> text;
    const auto read = [&](int32_t id) {
      if (tokens[static_cast<size_t>(id)].empty()) return slow.StepToken(id);
      for (const char c : tokens[static_cast<size_t>(id)]) {
        if (c == '\xFF' || !slow.Step(static_cast<uint8_t>(c))) return false;
      }
      return true;
    };
    Position position;
    for (int step = 0; step < 4; ++step) {
      std::vector<int32_t> expected, actual;
      for (int32_t id = 0; id < num_tokens; ++id) {
        slow.Start();
        for (const int32_t before : text) read(before);
        if (read(id)) expected.push_back(id);
      }
      try {
        const TokenBitmask mask = fast.AllowedTokens(position);
        for (int32_t id = 0; id < num_tokens + 5; ++id) {
          if (((mask)[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) actual.push_back(id);
        }
      } catch (const GrammarLimitError& error) {
        EXPECT_STREQ(error.what(), "no token of the vocabulary continues the text");
      }
      ASSERT_EQ(actual, expected) << "seed " << seed;
      num_allowed += expected.size();
      if (expected.empty()) break;
      text.push_back(expected[random() % expected.size()]);
      ASSERT_TRUE(fast.AdvanceToken(position, text.back()));
    }
  }
  EXPECT_GT(num_allowed, 1000u);
}

TEST(GrammarAutomatonTest, LeftRecursionMatches) {
  GrammarAutomaton automaton = Automaton([](GrammarBuilder& builder, SymbolId start) {
    builder.AddAlternative(start, {start, Text(builder, "+"), Text(builder, "x")});
    builder.AddAlternative(start, {Text(builder, "x")});
  });
  EXPECT_TRUE(Accepts(automaton, "x+x+x+x"));
  EXPECT_FALSE(Accepts(automaton, "x+x+"));
  EXPECT_FALSE(Accepts(automaton, "xx"));
}

TEST(GrammarAutomatonTest, RecursionInTheMiddleMatchesPalindromes) {
  GrammarAutomaton automaton = Automaton([](GrammarBuilder& builder, SymbolId start) {
    for (const char* letter : {"a", "b"}) {
      builder.AddAlternative(start, {Text(builder, letter), start, Text(builder, letter)});
      builder.AddAlternative(start, {Text(builder, letter)});
    }
    builder.AddAlternative(start, {});
  });
  EXPECT_TRUE(Accepts(automaton, ""));
  EXPECT_TRUE(Accepts(automaton, "abbabba"));
  EXPECT_TRUE(Accepts(automaton, "abba"));
  EXPECT_FALSE(Accepts(automaton, "abab"));
}

TEST(GrammarAutomatonTest, CyclesOfEmptyRulesEnd) {
  GrammarAutomaton automaton = Automaton([](GrammarBuilder& builder, SymbolId start) {
    const SymbolId other = builder.AddRule();
    builder.AddAlternative(start, {other, other, start});
    builder.AddAlternative(start, {Text(builder, "a")});
    builder.AddAlternative(other, {start});
    builder.AddAlternative(other, {});
  });
  EXPECT_TRUE(Accepts(automaton, "a"));
  EXPECT_TRUE(Accepts(automaton, "aaaaa"));
  EXPECT_FALSE(Accepts(automaton, ""));
}

// Right recursion, a long list and a long string must not make states for each element.
TEST(GrammarAutomatonTest, ListsOfAnyLengthNeedFewStates) {
  GrammarAutomaton automaton = Automaton([](GrammarBuilder& builder, SymbolId start) {
    const SymbolId item = builder.AddTerminal(builder.regexes().Star(builder.regexes().Literal("x")));
    builder.AddAlternative(start, {item, Text(builder, ","), start});
    builder.AddAlternative(start, {builder.AddRepeat(item, Text(builder, ";"), 2, GrammarBuilder::kUnbounded)});
  });
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "xxx,";
  for (int i = 0; i < 1000; ++i) text += "xxx;";
  Position position;
  ASSERT_TRUE(automaton.Advance(position, text.substr(0, 100)));
  ASSERT_TRUE(automaton.Advance(position, text.substr(100, 3950)));
  const size_t memory_bytes = automaton.memory_bytes();
  ASSERT_TRUE(automaton.Advance(position, text.substr(4050)));
  EXPECT_TRUE(automaton.MayEnd(position));
  EXPECT_EQ(automaton.memory_bytes(), memory_bytes);
}

// The rule of an element stays open while the next element begins.
TEST(GrammarAutomatonTest, ListsOfElementsWithAnEmptyEndNeedFewStates) {
  GrammarBuilder builder;
  RegexStore& store = builder.regexes();
  const SymbolId value = builder.AddRule();  // "v" or "(" value ")"
  builder.AddAlternative(value, {builder.AddTerminal(store.Literal("v"))});
  builder.AddAlternative(value,
                         {builder.AddTerminal(store.Literal("(")), value, builder.AddTerminal(store.Literal(")"))});
  const SymbolId space = builder.AddRepeat(builder.AddTerminal(store.Literal(" ")), GrammarBuilder::kNoSymbol, 0, 1);
  const SymbolId element = builder.AddRule();
  builder.AddAlternative(element, {value, space});
  GrammarAutomaton automaton(
      builder.Finish(builder.AddRepeat(element, GrammarBuilder::kNoSymbol, 0, GrammarBuilder::kUnbounded)),
      std::make_shared<const VocabTrie>(std::vector<std::string>(), 0));
  Position position;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(automaton.Advance(position, i % 2 == 0 ? "v " : "((v))"));
  const size_t memory_bytes = automaton.memory_bytes();
  for (int i = 0; i < 2000; ++i) EXPECT_TRUE(automaton.Advance(position, i % 2 == 0 ? "v " : "((v))"));
  EXPECT_TRUE(automaton.MayEnd(position));
  EXPECT_EQ(automaton.memory_bytes(), memory_bytes);
}

TEST(GrammarAutomatonTest, AStartThatIsATerminalMatches) {
  GrammarBuilder builder;
  const SymbolId start = Text(builder, "ab");
  GrammarAutomaton automaton(builder.Finish(start), NoVocabulary());
  EXPECT_TRUE(Accepts(automaton, "ab"));
  EXPECT_FALSE(Accepts(automaton, "a"));
}

TEST(GrammarAutomatonTest, AGrammarWithoutTextAllowsNothing) {
  GrammarAutomaton automaton = Automaton([](GrammarBuilder& builder, SymbolId start) {
    builder.AddAlternative(start, {Text(builder, "a"), start});
  });
  Position position;
  EXPECT_FALSE(automaton.has_text());
  EXPECT_FALSE(automaton.Advance(position, "a"));
  EXPECT_FALSE(automaton.MayEnd(position));
  EXPECT_EQ(automaton.Forced(position, 10).bytes, "");
}

// The text "a", and 2^30 times "b".
class LongAutomaton : public ByteAutomaton {
 public:
  int32_t Next(int32_t state, uint8_t byte) const override {
    if (byte == 'a' && state == 0) return kEnd;
    return byte == 'b' && state < kEnd ? state + 1 : -1;
  }
  bool IsFinal(int32_t state) const override { return state == kEnd; }
  std::vector<ByteSet> ByteClasses() const override { return {ByteSet::Range('a', 'a'), ByteSet::Range('b', 'b')}; }

 private:
  static constexpr int32_t kEnd = 1 << 30;
};

TEST(GrammarAutomatonTest, AMaskForWhichATextIsHardToFindIsAnError) {
  GrammarBuilder builder;
  RegexStore& regexes = builder.regexes();
  const RegexId other = regexes.Concat(regexes.Star(regexes.Literal("b")), regexes.Literal("c"));
  const RegexId rare = regexes.And({regexes.Automaton(std::make_shared<const LongAutomaton>()), regexes.Not(other)});
  const SymbolId start = builder.AddTerminal(rare);
  const std::vector<std::string> tokens = {"a", "b", "bb"};
  GrammarAutomaton automaton(builder.Finish(start), std::make_shared<const VocabTrie>(tokens, 3));
  EXPECT_TRUE(Accepts(automaton, "a"));
  Position position;
  EXPECT_EQ(MessageOf<EmptinessLimitError>([&] { automaton.AllowedTokens(position); }),
            "the grammar needs too many steps to find out if it has a text (limit 500000)");
  EXPECT_EQ(position.text, "");
}

GrammarAutomaton Brackets() {
  return Automaton([](GrammarBuilder& builder, SymbolId start) {
    const SymbolId list = builder.AddRepeat(start, Text(builder, ","), 0, GrammarBuilder::kUnbounded);
    builder.AddAlternative(start, {Text(builder, "["), list, Text(builder, "]")});
  });
}

TEST(GrammarAutomatonTest, Nesting512LevelsDeepIsAllowed) {
  GrammarAutomaton automaton = Brackets();
  EXPECT_TRUE(Accepts(automaton, std::string(512, '[') + std::string(512, ']')));
}

TEST(GrammarAutomatonTest, DeeperNestingIsALimitThatTheErrorNames) {
  GrammarAutomaton automaton = Brackets();
  Position position;
  EXPECT_EQ(MessageOf<GrammarLimitError>([&] { automaton.Advance(position, std::string(520, '[')); }),
            "the text is nested too deeply (more than 512 levels)");
  EXPECT_EQ(position.text, "");
}

TEST(GrammarAutomatonTest, AnErrorOfALimitDoesNotDependOnOtherTexts) {
  GrammarAutomaton automaton = Brackets();
  Position deep, shallow;
  EXPECT_THROW(automaton.Advance(deep, std::string(600, '[')), GrammarLimitError);
  EXPECT_TRUE(automaton.Advance(shallow, std::string(512, '[') + std::string(512, ']')));
  EXPECT_THROW(automaton.Advance(deep, std::string(600, '[')), GrammarLimitError);
}

TEST(GrammarAutomatonTest, ForcedTextStopsWhereThereIsAChoice) {
  GrammarAutomaton automaton = Automaton([](GrammarBuilder& builder, SymbolId start) {
    const SymbolId value = builder.AddRule();
    builder.AddAlternative(value, {Text(builder, "true")});
    builder.AddAlternative(value, {Text(builder, "null")});
    builder.AddAlternative(start, {Text(builder, "{\"key\":"), value, Text(builder, "}")});
  });
  Position position;
  ForcedText forced = automaton.Forced(position, 100);
  EXPECT_EQ(forced.bytes, "{\"key\":");
  EXPECT_FALSE(forced.ends);
  ASSERT_TRUE(automaton.Advance(position, "{\"key\":n"));
  forced = automaton.Forced(position, 100);
  EXPECT_EQ(forced.bytes, "ull}");
  EXPECT_TRUE(forced.ends);
  EXPECT_EQ(automaton.Forced(position, 2).bytes, "ul");
}

TEST(GrammarAutomatonTest, NothingIsForcedWhereTheTextMayEnd) {
  GrammarAutomaton automaton = Automaton([](GrammarBuilder& builder, SymbolId start) {
    builder.AddAlternative(start, {builder.AddRepeat(Text(builder, "ab"), GrammarBuilder::kNoSymbol, 1, 2)});
  });
  Position position;
  EXPECT_EQ(automaton.Forced(position, 100).bytes, "ab");
  ASSERT_TRUE(automaton.Advance(position, "ab"));
  EXPECT_EQ(automaton.Forced(position, 100).bytes, "");
  EXPECT_FALSE(automaton.Forced(position, 100).ends);
  ASSERT_TRUE(automaton.Advance(position, "ab"));
  EXPECT_TRUE(automaton.Forced(position, 100).ends);
}

TEST(GrammarAutomatonTest, ACopiedPositionComesBackToItsText) {
  GrammarAutomaton automaton = Brackets();
  Position position;
  ASSERT_TRUE(automaton.Advance(position, "[["));
  Position earlier = position;
  ASSERT_TRUE(automaton.Advance(position, "]]"));
  EXPECT_TRUE(automaton.MayEnd(position));
  EXPECT_FALSE(automaton.MayEnd(earlier));
  EXPECT_FALSE(automaton.Advance(position, "]"));
  EXPECT_TRUE(automaton.Advance(earlier, "],[]]"));
  EXPECT_TRUE(automaton.MayEnd(earlier));
}

// A text with a special token, so long that the automaton discards its states many times.
TEST(GrammarAutomatonTest, DiscardedStatesAreMadeAgain) {
  constexpr uint32_t kLength = 80'000;
  GrammarAutomaton automaton = Automaton([](GrammarBuilder& builder, SymbolId start) {
    const SymbolId letters = builder.AddTerminal(
        builder.regexes().Repeat(builder.regexes().Bytes(ByteSet::Range('a', 'z')), kLength, kLength));
    builder.AddAlternative(start, {builder.AddTokens({{5, 5}}), letters, Text(builder, ".")});
  });
  Position position;
  ASSERT_TRUE(automaton.AdvanceToken(position, 5));
  Position early = position;
  size_t num_discards = 0;
  for (uint32_t i = 0; i < kLength; i += 1000) {
    const uint64_t generation = position.generation;
    ASSERT_TRUE(automaton.Advance(position, std::string(1000, 'x')));
    num_discards += position.generation != generation ? 1 : 0;
    ASSERT_TRUE(automaton.Advance(early, "y"));
  }
  EXPECT_GT(num_discards, 1u);
  EXPECT_FALSE(automaton.Advance(position, "x"));
  EXPECT_TRUE(automaton.Advance(position, "."));
  EXPECT_TRUE(automaton.MayEnd(position));
  EXPECT_FALSE(automaton.Advance(early, "."));
}

// 0xFF marks special tokens in the text of a position, so it must be no text, also if its class of bytes is.
TEST(GrammarAutomatonTest, TheByte0xFFIsNoText) {
  GrammarAutomaton automaton = Automaton([](GrammarBuilder& builder, SymbolId start) {
    const SymbolId any = builder.AddTerminal(builder.regexes().Bytes(ByteSet::All()));
    builder.AddAlternative(start, {any, any});
  });
  Position position;
  EXPECT_FALSE(automaton.Advance(position, "\xFF"));
  EXPECT_TRUE(automaton.Advance(position, "\xFE"));
  EXPECT_FALSE(automaton.Advance(position, "\xFF"));
  EXPECT_TRUE(automaton.Advance(position, "a"));
  EXPECT_TRUE(automaton.MayEnd(position));
}

}  // namespace
}  // namespace vllm
