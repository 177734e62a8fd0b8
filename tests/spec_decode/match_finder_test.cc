#include "engine/spec_decode/match_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "tests/support/random_values.h"

namespace vllm {
namespace {

using TokenIds = std::vector<int32_t>;

// A match by value: its length and all tokens that follow it.
using Found = std::pair<size_t, TokenIds>;

TokenIds Following(const MatchFinder& finder, MatchFinder::Position position) {
  TokenIds following;
  for (; finder.token(position) != MatchFinder::kNoToken; position = finder.Next(position)) {
    following.push_back(finder.token(position));
  }
  return following;
}

std::vector<Found> Find(const MatchFinder& finder, const TokenIds& context) {
  std::vector<MatchFinder::Match> matches;
  finder.Find(context, matches);
  std::vector<Found> found;
  for (const MatchFinder::Match& match : matches) found.emplace_back(match.length, Following(finder, match.next));
  return found;
}

// Keeps the tokens of a MatchFinder's sequences, and searches them all.
class Oracle {
 public:
  explicit Oracle(size_t num_sequences) : texts_(num_sequences) {}

  void Append(size_t sequence, int32_t token) {
    texts_[sequence].push_back(token);
    order_.emplace_back(sequence, texts_[sequence].size() - 1);
  }
  std::vector<Found> Find(const TokenIds& context) const {
    std::vector<Found> found;
    for (size_t i = order_.size(); i-- > 0 && found.size() < MatchFinder::kMaxCandidates;) {
      const auto [sequence, position] = order_[i];
      const TokenIds& text = texts_[sequence];
      const size_t length = MatchLength(text, position, context);
      if (length < MatchFinder::kMinMatch) continue;
      found.emplace_back(length, TokenIds(text.begin() + static_cast<std::ptrdiff_t>(position), text.end()));
    }
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.first > b.first; });
    return found;
  }
  // Returns whether the match occurs in a sequence, where it may be longer and more tokens may follow.
  bool Contains(const TokenIds& context, const Found& match) const {
    TokenIds part(context.end() - static_cast<std::ptrdiff_t>(match.first), context.end());
    part.insert(part.end(), match.second.begin(), match.second.end());
    return std::any_of(texts_.begin(), texts_.end(), [&](const TokenIds& text) {
      return std::search(text.begin(), text.end(), part.begin(), part.end()) != text.end();
    });
  }

 private:
  static size_t MatchLength(const TokenIds& text, size_t position, const TokenIds& context) {
    size_t length = 0;
    while (length < std::min(position, context.size()) &&
           text[position - 1 - length] == context[context.size() - 1 - length]) {
      ++length;
    }
    return length;
  }

  std::vector<TokenIds> texts_;
  std::vector<std::pair<size_t, size_t>> order_;  // the sequence and position of each token
};

class MatchFinderTest : public testing::Test, protected testing_support::RandomValues {
 protected:
  MatchFinderTest() : RandomValues(12) {}
};

// All positions fit in the candidates, also if their hashes are equal.
TEST_F(MatchFinderTest, MatchesInSequencesThatGrowInTurnsEqualThoseOfASearch) {
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const auto num_sequences = static_cast<size_t>(Int(1, 4));
    const int64_t alphabet = Int(1, 4);
    MatchFinder finder;
    std::vector<MatchFinder::Sequence> sequences(num_sequences);
    Oracle oracle(num_sequences);
    for (int64_t i = Int(0, 32); i > 0; --i) {
      const auto sequence = static_cast<size_t>(Int(0, static_cast<int64_t>(num_sequences) - 1));
      const auto token = static_cast<int32_t>(Int(0, alphabet - 1));
      finder.Append(sequences[sequence], {&token, 1});
      oracle.Append(sequence, token);
    }
    const TokenIds context = Tokens(Int(0, 6), alphabet);
    ASSERT_EQ(Find(finder, context), oracle.Find(context));
  }
}

// The same values in each run, because pairs of tokens with equal hashes would share the candidates.
TEST_F(MatchFinderTest, LatestMatchesInLongSequencesEqualThoseOfASearch) {
  std::mt19937 random(7);
  for (int repeat = 0; repeat < 100; ++repeat) {
    MatchFinder finder;
    if (repeat % 2 == 0) finder.Reserve(4096);
    MatchFinder::Sequence sequence;
    Oracle oracle(1);
    const uint32_t alphabet = 2 + random() % 30;
    TokenIds text;
    for (uint32_t i = 200 + random() % 1000; i > 0; --i) text.push_back(static_cast<int32_t>(random() % alphabet));
    finder.Append(sequence, text);
    for (const int32_t token : text) oracle.Append(0, token);
    const TokenIds context(text.end() - 20, text.end());
    ASSERT_EQ(Find(finder, context), oracle.Find(context)) << "alphabet of " << alphabet;
  }
}

TEST_F(MatchFinderTest, TokensOfABoundedHistoryAreThoseOfItsSequences) {
  for (int repeat = 0; repeat < 100; ++repeat) {
    const size_t num_sequences = 12;
    const int64_t alphabet = Int(2, 6);
    MatchFinder finder(Int(1, 256), Int(1, 12));
    std::vector<MatchFinder::Sequence> sequences(num_sequences);
    Oracle oracle(num_sequences);
    for (int i = 0; i < 300; ++i) {
      const auto sequence = static_cast<size_t>(Int(0, static_cast<int64_t>(num_sequences) - 1));
      const TokenIds tokens = Tokens(Int(0, 5), alphabet);
      finder.Append(sequences[sequence], tokens);
      for (const int32_t token : tokens) oracle.Append(sequence, token);
      const TokenIds context = Tokens(5, alphabet);
      for (const Found& match : Find(finder, context)) {
        ASSERT_GE(match.first, MatchFinder::kMinMatch);
        ASSERT_GE(match.second.size(), 1u);
        ASSERT_TRUE(oracle.Contains(context, match));
      }
    }
  }
}

TEST_F(MatchFinderTest, OldestTokensOfABoundedHistoryAreReplaced) {
  MatchFinder finder(128, MatchFinder::kMaxSequences);
  MatchFinder::Sequence sequence;
  TokenIds text;
  for (int32_t i = 0; i < 1000; ++i) text.push_back(i);
  finder.Append(sequence, text);
  for (int32_t i = 0; i < 998; ++i) {
    const size_t num_found = Find(finder, {i, i + 1}).size();
    // Blocks are replaced as a whole, so between these limits it is one or the other.
    if (i >= 1000 - 96) {
      EXPECT_EQ(num_found, 1u) << i;
    } else if (i < 1000 - 128) {
      EXPECT_EQ(num_found, 0u) << i;
    }
  }
}

TEST_F(MatchFinderTest, BoundedHistoryDoesNotGrowForever) {
  MatchFinder finder(1024, MatchFinder::kMaxSequences);
  MatchFinder::Sequence sequence;
  finder.Append(sequence, Tokens(1024, 5));
  const size_t memory_bytes = finder.memory_bytes();
  EXPECT_LE(memory_bytes, 16u * 1024);
  finder.Append(sequence, Tokens(10000, 5));
  EXPECT_EQ(finder.memory_bytes(), memory_bytes);
}

TEST_F(MatchFinderTest, SequenceContinuesAfterItsLastBlockWasReplaced) {
  MatchFinder finder(64, MatchFinder::kMaxSequences);
  MatchFinder::Sequence slow;
  MatchFinder::Sequence fast;
  finder.Append(slow, TokenIds{1, 2, 3});
  finder.Append(fast, Tokens(200, 1));
  finder.Append(slow, TokenIds{4, 5, 6});
  EXPECT_EQ(Find(finder, {2, 3}), std::vector<Found>());
  EXPECT_EQ(Find(finder, {3, 4, 5}), std::vector<Found>({{2, {6}}}));
}

TEST_F(MatchFinderTest, MatchEndsWhereTheBlockBeforeItWasReplaced) {
  MatchFinder finder(64, MatchFinder::kMaxSequences);
  MatchFinder::Sequence sequence;
  MatchFinder::Sequence other;
  TokenIds text;
  for (int32_t i = 0; i < 40; ++i) text.push_back(i);
  finder.Append(sequence, text);
  EXPECT_EQ(Find(finder, {30, 31, 32, 33}), std::vector<Found>({{4, {34, 35, 36, 37, 38, 39}}}));
  finder.Append(other, TokenIds(32, 77));
  EXPECT_EQ(Find(finder, {30, 31, 32, 33}), std::vector<Found>({{2, {34, 35, 36, 37, 38, 39}}}));
  EXPECT_EQ(Find(finder, {77, 77, 32, 33}), std::vector<Found>({{2, {34, 35, 36, 37, 38, 39}}}));
}

TEST_F(MatchFinderTest, OnlyTheSequencesThatStartedLastAreSearched) {
  MatchFinder finder(1024, 2);
  MatchFinder::Sequence sequences[3];
  for (int32_t i = 0; i < 3; ++i) finder.Append(sequences[i], TokenIds{7, 8, i});
  EXPECT_EQ(Find(finder, {7, 8}), std::vector<Found>({{2, {2}}, {2, {1}}}));
}

TEST_F(MatchFinderTest, MatchesDoNotCrossTheEndOfASequence) {
  MatchFinder finder;
  MatchFinder::Sequence a;
  MatchFinder::Sequence b;
  finder.Append(a, TokenIds{1, 2});
  finder.Append(b, TokenIds{3, 4});
  EXPECT_EQ(Find(finder, {2, 3}), std::vector<Found>());
  EXPECT_EQ(Find(finder, {1, 2}), std::vector<Found>()) << "no token follows";
}

TEST_F(MatchFinderTest, LongestMatchIsFirst) {
  MatchFinder finder;
  MatchFinder::Sequence sequence;
  finder.Append(sequence, TokenIds{1, 2, 3, 7, 0, 2, 3, 8});
  EXPECT_EQ(Find(finder, {1, 2, 3}), std::vector<Found>({{3, {7, 0, 2, 3, 8}}, {2, {8}}}));
}

TEST_F(MatchFinderTest, MatchIsNotLongerThanTheContext) {
  MatchFinder finder;
  MatchFinder::Sequence sequence;
  finder.Append(sequence, TokenIds{1, 2, 3, 4, 5});
  EXPECT_EQ(Find(finder, {2, 3, 4}), std::vector<Found>({{3, {5}}}));
  EXPECT_EQ(Find(finder, {4}), std::vector<Found>());
  EXPECT_EQ(Find(finder, {}), std::vector<Found>());
}

TEST_F(MatchFinderTest, RepeatedTokenGivesABoundedNumberOfMatches) {
  MatchFinder finder;
  MatchFinder::Sequence sequence;
  finder.Append(sequence, TokenIds(1'000'000, 5));
  std::vector<MatchFinder::Match> matches;
  finder.Find(TokenIds(24, 5), matches);
  ASSERT_EQ(matches.size(), MatchFinder::kMaxCandidates);
  for (const MatchFinder::Match& match : matches) EXPECT_EQ(match.length, 24u);
}

}  // namespace
}  // namespace vllm
