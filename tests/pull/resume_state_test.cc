#include "app/hub/pull/resume_state.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

const std::string kEtag(64, 'e');

std::string Text() {
  ResumeState state{kEtag, 1000, 4711, "build1", {}};
  state.ranges.Add({0, 100});
  state.ranges.Add({200, 300});
  return FormatResumeState(state);
}

TEST(ResumeStateTest, FormatIsThatOfTheHeader) {
  EXPECT_EQ(Text(),
            "vllmcli-partial 1\netag " + kEtag + "\nsize 1000\nowner 4711 build1\nrange 0 100\nrange 200 300\nend\n");
}

TEST(ResumeStateTest, StateIsReadBack) {
  const std::optional<ResumeState> state = ParseResumeState(Text());
  ASSERT_TRUE(state);
  EXPECT_EQ(state->etag, kEtag);
  EXPECT_EQ(state->size, 1000);
  EXPECT_EQ(state->owner_pid, 4711);
  EXPECT_EQ(state->owner_host, "build1");
  EXPECT_EQ(state->ranges.ranges(), (std::vector<ByteRange>{{0, 100}, {200, 300}}));
}

TEST(ResumeStateTest, TextThatWasCutIsRejected) {
  const std::string text = Text();
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseResumeState(text.substr(0, size))) << size;
  }
}

TEST(ResumeStateTest, RangesMustAscendWithinTheFile) {
  const std::string head = "vllmcli-partial 1\netag " + kEtag + "\nsize 1000\nowner 1 h\n";
  EXPECT_TRUE(ParseResumeState(head + "end\n"));
  for (const char* ranges : {"range 0 1001\n", "range 5 5\n", "range 9 5\n", "range 0 9\nrange 5 20\n", "range -1 5\n",
                             "range 0 9\nrange 9 20\n", "range 1\n", "range\n", "range a b\n", "range 0 5 \n", "x\n"}) {
    EXPECT_FALSE(ParseResumeState(head + ranges + "end\n")) << ranges;
  }
}

TEST(ResumeStateTest, OtherTextIsRejected) {
  EXPECT_FALSE(ParseResumeState("vllmcli-partial 2\n"));
  EXPECT_FALSE(ParseResumeState(Text() + "x"));
  EXPECT_FALSE(ParseResumeState("vllmcli-partial 1\netag ../x\nsize 1\nowner 1 h\nend\n"));
  EXPECT_FALSE(ParseResumeState(std::string(ResumeState::kMaxBytes + 1, '\n')));
}

}  // namespace

}  // namespace vllm::app
