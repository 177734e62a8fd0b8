// Tests ThinkingTracker: phases, counts and the token that a budget forces, with a tokenizer of bytes.
#include "engine/reasoning/thinking_tracker.h"

#include <gtest/gtest.h>

#include "tests/frontend/byte_tokenizer.h"

namespace vllm {
namespace {

using testing::AddedToken;
using testing::Bytes;
using testing::kEos;

using Ids = std::vector<int32_t>;

constexpr int32_t kStart = 259;
constexpr int32_t kEnd = 260;

std::shared_ptr<const ReasoningFormat> Format(const std::string& family, const std::vector<AddedToken>& tokens) {
  return MakeReasoningFormat(*FindReasoningFamily(family), true, testing::MakeByteTokenizer(tokens));
}
std::shared_ptr<const ReasoningFormat> ThinkFormat(const std::string& family = "qwen3") {
  return Format(family, {{"<think>", false}, {"</think>", false}});
}

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Start {
  std::shared_ptr<const ReasoningFormat> format;
  Ids prompt;
};

// Generates like a sampler with a budget: the model wants `wanted`, but forced tokens take precedence. Stops when the
// thought has ended.
Ids RunWithBudget(const Start& start, const Ids& wanted, int64_t budget) {
  ThinkingTracker tracker(start.format, start.prompt);
  Ids output;
  for (const int32_t id : wanted) {
    const int32_t forced = tracker.ForcedToken(budget);
    output.push_back(forced >= 0 ? forced : id);
    tracker.Feed(output.back());
    if (tracker.phase() == ReasoningPhase::kAnswer) break;
  }
  return output;
}

TEST(ThinkingTrackerTest, ThoughtIsBetweenTheMarkers) {
  ThinkingTracker tracker(ThinkFormat(), Bytes("hello"));
  EXPECT_EQ(tracker.Feed('\n'), TokenKind::kUndecided);
  EXPECT_EQ(tracker.Feed(kStart), TokenKind::kMarker);
  EXPECT_EQ(tracker.Feed('a'), TokenKind::kThought);
  EXPECT_EQ(tracker.Feed('b'), TokenKind::kThought);
  EXPECT_EQ(tracker.num_thinking_tokens(), 2);
  EXPECT_EQ(tracker.Feed(kEnd), TokenKind::kMarker);
  EXPECT_EQ(tracker.Feed(kStart), TokenKind::kAnswer);
  EXPECT_EQ(tracker.num_thinking_tokens(), 2);
}

TEST(ThinkingTrackerTest, StartMarkerAfterOtherTextIsText) {
  ThinkingTracker tracker(ThinkFormat(), Bytes("hello"));
  EXPECT_EQ(tracker.Feed('x'), TokenKind::kAnswer);
  EXPECT_EQ(tracker.Feed(kStart), TokenKind::kAnswer);
  EXPECT_FALSE(tracker.has_thought());
}

TEST(ThinkingTrackerTest, TemplateMayOpenTheThought) {
  ThinkingTracker tracker(ThinkFormat(), Bytes("hello") + Ids{kEos, kStart, '\n'});
  EXPECT_TRUE(tracker.is_thinking());
  EXPECT_EQ(tracker.num_thinking_tokens(), 1);
  EXPECT_EQ(tracker.Feed(kStart), TokenKind::kMarker) << "a repeated start marker is dropped once";
  EXPECT_EQ(tracker.Feed(kStart), TokenKind::kThought);
  EXPECT_EQ(tracker.num_thinking_tokens(), 2);
}

TEST(ThinkingTrackerTest, MarkersInAQuestionDoNotCount) {
  EXPECT_FALSE(ThinkingTracker(ThinkFormat(), Ids{'a', kStart, 'b', kEos, '\n'}).is_thinking());
  EXPECT_FALSE(ThinkingTracker(ThinkFormat(), Ids{kEos, kStart, '\n', kEnd, '\n'}).is_thinking());
  EXPECT_TRUE(ThinkingTracker(ThinkFormat(), Ids{kEos, kEnd, kStart}).is_thinking());
}

TEST(ThinkingTrackerTest, FamiliesThatBeginInsideNeedNoStartMarker) {
  EXPECT_TRUE(ThinkingTracker(ThinkFormat("deepseek_r1"), Ids{kEos}).is_thinking());
  EXPECT_FALSE(ThinkingTracker(ThinkFormat("deepseek_r1"), Ids{kEos, kStart, kEnd}).is_thinking());
}

TEST(ThinkingTrackerTest, BudgetForcesTheEndMarker) {
  const Start start{ThinkFormat(), Bytes("hello")};
  const Ids wanted = Ids{kStart} + Bytes("abcdefgh");
  EXPECT_EQ(RunWithBudget(start, wanted, 3), (Ids{kStart, 'a', 'b', 'c', kEnd}));
  EXPECT_EQ(RunWithBudget(start, wanted, 0), (Ids{kStart, kEnd}));
  EXPECT_EQ(RunWithBudget(start, wanted, 8), wanted);
}

TEST(ThinkingTrackerTest, BudgetCountsTheTokensOfThePrompt) {
  const Start start{ThinkFormat(), Ids{kEos, kStart, '\n'}};
  EXPECT_EQ(RunWithBudget(start, Bytes("abcdef"), 3), (Ids{'a', 'b', kEnd}));
  EXPECT_EQ(RunWithBudget(start, Bytes("abcdef"), 1), Ids{kEnd});
}

TEST(ThinkingTrackerTest, BudgetDoesNotAffectAnAnswerWithoutAThought) {
  ThinkingTracker answer(ThinkFormat(), Bytes("hello"));
  for (const int32_t id : Bytes("answer")) {
    EXPECT_EQ(answer.ForcedToken(0), -1);
    answer.Feed(id);
  }
}

TEST(ThinkingTrackerTest, ThoughtDoesNotEndInsideACharacter) {
  const Start start{ThinkFormat(), Bytes("hello")};
  const Ids wanted = Ids{kStart} + Bytes("a\xf0\x9f\x90\x88zzz");
  const Ids whole = Ids{kStart} + Bytes("a\xf0\x9f\x90\x88") + Ids{kEnd};
  for (const int64_t budget : {2, 3, 4, 5}) EXPECT_EQ(RunWithBudget(start, wanted, budget), whole) << budget;
  EXPECT_EQ(RunWithBudget(start, wanted, 1), (Ids{kStart, 'a', kEnd}));
}

TEST(ThinkingTrackerTest, InvalidBytesDelayTheEndByThreeTokens) {
  const Start start{ThinkFormat(), Bytes("hello")};
  const Ids wanted = Ids{kStart} + Bytes("\xe2\xe2\xe2\xe2\xe2\xe2\xe2\xe2\xe2");
  EXPECT_EQ(RunWithBudget(start, wanted, 2), Ids{kStart} + Bytes("\xe2\xe2\xe2\xe2\xe2") + Ids{kEnd});
}

TEST(ThinkingTrackerTest, MarkerOfSeveralTokensIsForcedAndNeverDoubled) {
  // Without marker tokens, the end marker is the eight bytes of its text.
  const auto format = MakeReasoningFormat(*FindReasoningFamily("qwen3"), true, testing::MakeByteTokenizer());
  ASSERT_EQ(format->kind, ReasoningFormat::Kind::kText);
  const Start start{format, Bytes("hello")};
  const Ids wanted = Bytes("<think>") + Bytes("abcdefghijklmnopqrstuvwxyz");
  EXPECT_EQ(RunWithBudget(start, wanted, 3), Bytes("<think>abc</think>"));
  // The model has begun the marker when the budget ends.
  EXPECT_EQ(RunWithBudget(start, Bytes("<think>ab</thi is not the end"), 7), Bytes("<think>ab</think>"));
}

TEST(ThinkingTrackerTest, RestOfTheMarkerContinuesWhatTheModelBegan) {
  const auto format = MakeReasoningFormat(*FindReasoningFamily("qwen3"), true, testing::MakeByteTokenizer());
  ThinkingTracker tracker(format, Bytes("hello"));
  for (const int32_t id : Bytes("<think>ab</th")) tracker.Feed(id);
  EXPECT_EQ(tracker.RestOfEndMarker(), Bytes("ink>"));
  tracker.Feed('x');
  EXPECT_EQ(tracker.RestOfEndMarker(), Bytes("</think>"));
}

class HarmonyTest : public ::testing::Test {
 protected:
  static constexpr int32_t kChannel = 259, kMessage = 260, kMessageStart = 261, kMessageEnd = 262;
  std::shared_ptr<const ReasoningFormat> format_ =
      Format("gpt_oss", {{"<|channel|>"}, {"<|message|>"}, {"<|start|>"}, {"<|end|>"}});
  Ids prompt_ = Bytes("q") + Ids{kMessageEnd, kMessageStart} + Bytes("assistant");
  Ids analysis_ = Ids{kChannel} + Bytes("analysis") + Ids{kMessage};
  Ids next_ = Ids{kMessageEnd, kMessageStart} + Bytes("assistant");
  Ids final_ = Ids{kChannel} + Bytes("final") + Ids{kMessage};
};

TEST_F(HarmonyTest, AnalysisIsTheThought) {
  ThinkingTracker tracker(format_, prompt_);
  for (const int32_t id : analysis_) EXPECT_EQ(tracker.Feed(id), TokenKind::kMarker);
  EXPECT_EQ(tracker.Feed('x'), TokenKind::kThought);
  for (const int32_t id : next_ + final_) EXPECT_EQ(tracker.Feed(id), TokenKind::kMarker);
  EXPECT_EQ(tracker.Feed('y'), TokenKind::kAnswer);
  EXPECT_EQ(tracker.num_thinking_tokens(), 1);
}

TEST_F(HarmonyTest, SeveralThoughtsAddUp) {
  ThinkingTracker tracker(format_, prompt_);
  for (const int32_t id : analysis_ + Bytes("ab") + next_ + analysis_ + Bytes("cd")) tracker.Feed(id);
  EXPECT_TRUE(tracker.is_thinking());
  EXPECT_EQ(tracker.num_thinking_tokens(), 4);
}

TEST_F(HarmonyTest, BudgetLeadsToTheFinalChannel) {
  const Start start{format_, prompt_};
  EXPECT_EQ(RunWithBudget(start, analysis_ + Bytes("abcdefghijklmnopqrstuvwxyz and some more text"), 2),
            analysis_ + Bytes("ab") + next_ + final_);
}

TEST_F(HarmonyTest, BudgetLeadsToAnyMessageIfItMayBeACall) {
  ThinkingTracker tracker(format_, prompt_, /*may_call=*/true);
  for (const int32_t id : analysis_ + Bytes("ab")) tracker.Feed(id);
  for (const int32_t id : next_) {
    EXPECT_EQ(tracker.ForcedToken(2), id);
    tracker.Feed(id);
  }
  EXPECT_EQ(tracker.ForcedToken(2), -1);
  tracker.Feed(kChannel);
  EXPECT_EQ(tracker.ForcedToken(2), -1);
}

TEST_F(HarmonyTest, OutputWithoutAChannelIsAnAnswer) {
  ThinkingTracker tracker(format_, prompt_);
  EXPECT_EQ(tracker.Feed('H'), TokenKind::kAnswer);
  EXPECT_EQ(tracker.Feed('i'), TokenKind::kAnswer);
}

}  // namespace
}  // namespace vllm
