#include "engine/frontend/stop_checker.h"

#include <gtest/gtest.h>

namespace vllm {
namespace {

TEST(StopCheckerTest, NothingIsFoundWithoutNewBytes) { EXPECT_FALSE(StopChecker({"stop"}, false).Find("a stop", 0)); }

TEST(StopCheckerTest, MatchThatEndsInOldTextIsNotFoundAgain) {
  const StopChecker checker({"stop"}, false);
  EXPECT_FALSE(checker.Find("a stop here", 5));
  EXPECT_TRUE(checker.Find("a stop here", 6));
}

TEST(StopCheckerTest, MatchMayStartInOldText) {
  const auto match = StopChecker({"stop"}, false).Find("a stop", 1);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->output_size, 2u);
}

TEST(StopCheckerTest, OutputEndsBeforeTheStopStringOrWithIt) {
  EXPECT_EQ(StopChecker({"END"}, false).Find("abcENDdef", 9)->output_size, 3u);
  EXPECT_EQ(StopChecker({"END"}, true).Find("abcENDdef", 9)->output_size, 6u);
}

TEST(StopCheckerTest, StopStringThatCompletesFirstWinsOverListOrder) {
  const auto match = StopChecker({"later", "now"}, false).Find("now or later", 12);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->stop_index, 1u);
  EXPECT_EQ(match->output_size, 0u);
}

TEST(StopCheckerTest, ShortStringInsideALongOneCompletesFirst) {
  // "bc" ends before "abcd", although "abcd" starts earlier.
  const auto match = StopChecker({"abcd", "bc"}, false).Find("xabcd", 5);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->stop_index, 1u);
  EXPECT_EQ(match->output_size, 2u);
}

TEST(StopCheckerTest, TiesAreBrokenByListOrder) {
  EXPECT_EQ(StopChecker({"cd", "bcd"}, false).Find("abcd", 4)->stop_index, 0u);
  EXPECT_EQ(StopChecker({"bcd", "cd"}, false).Find("abcd", 4)->stop_index, 0u);
}

TEST(StopCheckerTest, OutputEndsAtTheFirstOccurrence) {
  EXPECT_EQ(StopChecker({"x"}, false).Find("abxcdx", 6)->output_size, 2u);
}

TEST(StopCheckerTest, HoldbackCountsCodePointsNotBytes) {
  EXPECT_EQ(StopChecker({"né€😀"}, false).holdback(), 3u);
  EXPECT_EQ(StopChecker({"a", "bcd"}, false).holdback(), 2u);
}

TEST(StopCheckerTest, NothingIsHeldBackIfStopStringsAreIncludedOrThereAreNone) {
  EXPECT_EQ(StopChecker({"abc"}, true).holdback(), 0u);
  EXPECT_EQ(StopChecker({}, false).holdback(), 0u);
}

}  // namespace
}  // namespace vllm
