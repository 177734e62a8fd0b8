#include "app/editor/multi_line.h"

#include <gtest/gtest.h>

#include "app/editor/completer.h"

namespace vllm::app {
namespace {

TEST(MultiLineTest, BlockIsOpenUntilTheSecondMarker) {
  EXPECT_FALSE(HasOpenBlock("text"));
  EXPECT_TRUE(HasOpenBlock("\"\"\""));
  EXPECT_TRUE(HasOpenBlock("  \"\"\"one\ntwo"));
  EXPECT_FALSE(HasOpenBlock("\"\"\"one\ntwo\"\"\""));
  EXPECT_FALSE(HasOpenBlock("say \"\"\" now")) << "a block begins the draft";
}

TEST(MultiLineTest, BlockIsSentWithoutItsMarkers) {
  EXPECT_EQ(MessageOfDraft("\"\"\"\none\ntwo\n\"\"\""), "one\ntwo");
  EXPECT_EQ(MessageOfDraft("\"\"\"one\ntwo\"\"\" "), "one\ntwo");
  EXPECT_EQ(MessageOfDraft("\"\"\"\"\"\""), "");
}

TEST(MultiLineTest, OtherTextIsSentUnchanged) {
  for (const char* text : {"", "a\nb", " \"\"", "\"\"\"", "x = \"\"\"a\"\"\"",
                           "\"\"\"Module.\"\"\"\nx = \"\"\"a\"\"\"\n", "\"\"\"doc\"\"\"\ndef f(): pass"}) {
    EXPECT_EQ(MessageOfDraft(text), text);
  }
}

TEST(MultiLineTest, OddNumberOfBackslashesContinues) {
  EXPECT_TRUE(ContinuesAfterBackslash("a\\", 2));
  EXPECT_FALSE(ContinuesAfterBackslash("a\\\\", 3));
  EXPECT_TRUE(ContinuesAfterBackslash("a\\\\\\", 4));
  EXPECT_FALSE(ContinuesAfterBackslash("a\\", 1));
  EXPECT_FALSE(ContinuesAfterBackslash("a\\b", 2)) << "the cursor is not at the end of the line";
  EXPECT_TRUE(ContinuesAfterBackslash("a\\\nb", 2));
  EXPECT_FALSE(ContinuesAfterBackslash("", 0));
}

using Lines = std::vector<std::string>;

TEST(CompletionLinesTest, ChoicesWithDescriptionsHaveALineEach) {
  EXPECT_EQ(CompletionLines({{"/help", "list"}, {"/set", "change a setting"}}, 80, 10),
            (Lines{"/help  list", "/set   change a setting"}));
  EXPECT_EQ(CompletionLines({{"/help", "list"}, {"/set", "change a setting"}}, 12, 10),
            (Lines{"/help  list", "/set   chan"}));
}

TEST(CompletionLinesTest, ChoicesWithoutDescriptionsShareLines) {
  EXPECT_EQ(CompletionLines({{"a", ""}, {"bcd", ""}, {"e", ""}}, 13, 10), (Lines{"a    bcd", "e"}));
}

TEST(CompletionLinesTest, LongListIsCut) {
  std::vector<CompletionChoice> choices;
  for (int i = 0; i < 10; ++i) choices.push_back({"/c" + std::to_string(i), "text"});
  EXPECT_EQ(CompletionLines(choices, 80, 3), (Lines{"/c0  text", "/c1  text", "[8 more]"}));
}

TEST(CompletionLinesTest, HostileNamesAreSafe) {
  EXPECT_EQ(CompletionLines({{"a\x1b[2J\nb", "\x07"}}, 80, 3), (Lines{"a<1b>[2J\\nb  <07>"}));
}

}  // namespace
}  // namespace vllm::app
