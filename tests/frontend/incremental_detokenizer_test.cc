#include "engine/frontend/incremental_detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/frontend/byte_tokenizer.h"

namespace vllm {
namespace {

using testing::Bytes;
using testing::kEos;
using testing::kWord;

class IncrementalDetokenizerTest : public ::testing::Test {
 protected:
  IncrementalDetokenizer Make() { return IncrementalDetokenizer(*tokenizer_, params_, {}); }

  std::unique_ptr<tokenizer::Tokenizer> tokenizer_ = testing::MakeByteTokenizer();
  SamplingParams params_;
};

TEST_F(IncrementalDetokenizerTest, TextGrowsAsTokensAreAppended) {
  auto detokenizer = Make();
  EXPECT_EQ(detokenizer.Append(Bytes("he")), 2u);
  EXPECT_EQ(detokenizer.GetNextOutputText(false, true), "he");
  detokenizer.Append(Bytes("llo"));
  EXPECT_EQ(detokenizer.GetNextOutputText(false, true), "llo");
  EXPECT_EQ(detokenizer.GetNextOutputText(false, false), "hello");
  EXPECT_EQ(detokenizer.GetNextOutputText(false, true), "");
}

TEST_F(IncrementalDetokenizerTest, IncompleteCharacterIsNotReturned) {
  auto detokenizer = Make();
  const auto smile = Bytes("😀");
  for (size_t i = 0; i < 3; ++i) {
    detokenizer.Append(std::span(smile).subspan(i, 1));
    EXPECT_EQ(detokenizer.GetNextOutputText(false, false), "");
  }
  detokenizer.Append(std::span(smile).subspan(3));
  EXPECT_EQ(detokenizer.GetNextOutputText(false, true), "😀");
}

TEST_F(IncrementalDetokenizerTest, IncompleteCharacterBecomesAReplacementCharacterAtTheEnd) {
  auto detokenizer = Make();
  detokenizer.Append(Bytes("a\xF0\x9F"));
  EXPECT_EQ(detokenizer.GetNextOutputText(false, false), "a");
  detokenizer.Finish();
  EXPECT_EQ(detokenizer.GetNextOutputText(true, false), "a\xEF\xBF\xBD");
}

TEST_F(IncrementalDetokenizerTest, SpecialTokensAreSkippedOrReturned) {
  auto skipping = Make();
  skipping.Append(std::vector<int32_t>{'a', kEos, 'b'});
  EXPECT_EQ(skipping.GetNextOutputText(true, false), "ab");
  params_.skip_special_tokens = false;
  auto showing = Make();
  showing.Append(std::vector<int32_t>{'a', kEos, 'b'});
  EXPECT_EQ(showing.GetNextOutputText(true, false), "a</s>b");
}

TEST_F(IncrementalDetokenizerTest, OneCharacterLessThanTheStopStringIsHeldBack) {
  params_.stop = {"STOP"};
  auto detokenizer = Make();
  detokenizer.Append(Bytes("abcST"));
  EXPECT_EQ(detokenizer.GetNextOutputText(false, true), "ab");
  detokenizer.Append(Bytes("AY"));
  EXPECT_EQ(detokenizer.GetNextOutputText(false, true), "cS");
  detokenizer.Finish();
  EXPECT_EQ(detokenizer.GetNextOutputText(true, true), "TAY");
}

TEST_F(IncrementalDetokenizerTest, HoldbackKeepsWholeCharacters) {
  params_.stop = {"éé"};
  auto detokenizer = Make();
  detokenizer.Append(Bytes("a€é"));
  EXPECT_EQ(detokenizer.GetNextOutputText(false, true), "a€");
  detokenizer.Append(Bytes("é"));
  ASSERT_NE(detokenizer.stop_string(), nullptr);
  EXPECT_EQ(detokenizer.GetNextOutputText(true, false), "a€");
}

TEST_F(IncrementalDetokenizerTest, TokensAfterTheStopStringAreNotConsumed) {
  params_.stop = {"bc"};
  auto detokenizer = Make();
  EXPECT_EQ(detokenizer.Append(Bytes("abcdef")), 3u);
  EXPECT_EQ(detokenizer.GetNextOutputText(true, false), "a");
  EXPECT_EQ(*detokenizer.stop_string(), "bc");
}

TEST_F(IncrementalDetokenizerTest, StopStringInsideATokenCutsTheTextOfThatToken) {
  params_.stop = {"or"};
  auto detokenizer = Make();
  EXPECT_EQ(detokenizer.Append(std::vector<int32_t>{'a', kWord, 'b'}), 2u);
  EXPECT_EQ(detokenizer.GetNextOutputText(true, false), "a w");
}

TEST_F(IncrementalDetokenizerTest, StopStringMayStayInTheOutput) {
  params_.stop = {"or"};
  params_.include_stop_str_in_output = true;
  auto detokenizer = Make();
  detokenizer.Append(std::vector<int32_t>{'a', kWord});
  EXPECT_EQ(detokenizer.GetNextOutputText(true, false), "a wor");
}

TEST_F(IncrementalDetokenizerTest, StopStringsThatEndWithinMinTokensAreIgnored) {
  params_.stop = {"b"};
  params_.min_tokens = 3;
  auto detokenizer = Make();
  EXPECT_EQ(detokenizer.Append(Bytes("abacabb")), 6u);
  EXPECT_EQ(detokenizer.GetNextOutputText(true, false), "abaca");
}

TEST_F(IncrementalDetokenizerTest, StopStringMayStartWithinMinTokensButNotEndThere) {
  params_.stop = {"cd"};
  params_.min_tokens = 3;
  auto ends_after = Make();
  EXPECT_EQ(ends_after.Append(Bytes("abcd")), 4u);
  EXPECT_NE(ends_after.stop_string(), nullptr);
  params_.min_tokens = 4;
  auto ends_within = Make();
  EXPECT_EQ(ends_within.Append(Bytes("abcdef")), 6u);
  EXPECT_EQ(ends_within.stop_string(), nullptr);
}

TEST_F(IncrementalDetokenizerTest, StopStringCompletedByTheFinalFlushIsFound) {
  params_.stop = {"a\xEF\xBF\xBD"};
  auto detokenizer = Make();
  detokenizer.Append(Bytes("xa\xE2\x82"));
  EXPECT_EQ(detokenizer.stop_string(), nullptr);
  detokenizer.Finish();
  EXPECT_NE(detokenizer.stop_string(), nullptr);
  EXPECT_EQ(detokenizer.GetNextOutputText(true, false), "x");
}

// The number of consumed tokens, the text, and whether a stop string ended the text do not depend on how the ids are
// split into calls to Append, and the deltas concatenate to the text. Decoding all ids at once gives the same text or,
// if a stop string ended the text, a string that begins with it.
TEST_F(IncrementalDetokenizerTest, RandomSplitsDoNotChangeTheResult) {
  std::mt19937 random(7);
  const std::vector<std::string> words = {"a", "b", "ab", "é", "€", "😀", "\xE2\x82", " word"};
  for (int round = 0; round < 3000; ++round) {
    params_ = {};
    for (size_t i = random() % 3; i > 0; --i) {
      std::string stop;
      for (size_t j = 1 + random() % 3; j > 0; --j) stop += words[random() % 6];
      params_.stop.push_back(stop);
    }
    params_.include_stop_str_in_output = random() % 2 == 0;
    params_.min_tokens = static_cast<int64_t>(random() % 6);
    std::vector<int32_t> ids;
    for (size_t i = random() % 30; i > 0; --i) {
      const std::string& word = words[random() % words.size()];
      if (word == " word") {
        ids.push_back(kWord);
      } else {
        for (const int32_t id : Bytes(word)) ids.push_back(id);
      }
    }

    auto whole = Make();
    const size_t consumed = whole.Append(ids);
    if (whole.stop_string() == nullptr) whole.Finish();

    auto split = Make();
    std::string deltas;
    size_t split_consumed = 0;
    while (split_consumed < ids.size() && split.stop_string() == nullptr) {
      const size_t size = std::min(ids.size() - split_consumed, 1 + random() % 4);
      split_consumed += split.Append(std::span(ids).subspan(split_consumed, size));
      if (split.stop_string() == nullptr) deltas += split.GetNextOutputText(false, true);
    }
    if (split.stop_string() == nullptr) split.Finish();
    deltas += split.GetNextOutputText(true, true);
    ASSERT_EQ(split_consumed, consumed);
    ASSERT_EQ(split.GetNextOutputText(true, false), whole.GetNextOutputText(true, false));
    ASSERT_EQ(deltas, whole.GetNextOutputText(true, false));
    ASSERT_EQ(split.stop_string() == nullptr, whole.stop_string() == nullptr);
    if (whole.stop_string() == nullptr) {
      ASSERT_EQ(whole.GetNextOutputText(true, false), tokenizer_->Decode(ids, true));
      for (const std::string& stop : params_.stop) {
        if (params_.min_tokens > 0) continue;
        ASSERT_EQ(whole.GetNextOutputText(true, false).find(stop), std::string::npos);
      }
    } else {
      ASSERT_TRUE(tokenizer::IsValidUtf8(deltas));
      const std::string all = tokenizer_->Decode(ids, true);
      ASSERT_EQ(all.substr(0, deltas.size()), deltas);
    }
  }
}

}  // namespace
}  // namespace vllm
