// Tests the order of the settings that decide about colors.
#include "app/terminal/color_policy.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <string>

namespace vllm::app {
namespace {

class ColorPolicyTest : public testing::Test {
 protected:
  void SetUp() override { Environment({}); }
  void TearDown() override { SetColorChoice(ColorChoice::kAuto); }

  static void Environment(const std::map<std::string, std::string>& values) {
    for (const char* name : {"NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "TERM", "TMUX", "VTE_VERSION",
                             "WT_SESSION", "KITTY_WINDOW_ID", "TERM_PROGRAM"}) {
      unsetenv(name);
    }
    setenv("TERM", "xterm", 1);
    for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
  }
  // Standard output of the test may be a terminal, so a file is used.
  static bool MayColorAFile() {
    int ends[2];
    if (pipe(ends) != 0) return false;
    const bool result = MayColor(ends[1]);
    close(ends[0]);
    close(ends[1]);
    return result;
  }
};

TEST_F(ColorPolicyTest, FilesHaveNoColors) { EXPECT_FALSE(MayColorAFile()); }

TEST_F(ColorPolicyTest, ForceVariablesColorFilesUnlessTheyAreZero) {
  Environment({{"CLICOLOR_FORCE", "1"}});
  EXPECT_TRUE(MayColorAFile());
  Environment({{"FORCE_COLOR", "1"}});
  EXPECT_TRUE(MayColorAFile());
  Environment({{"CLICOLOR_FORCE", "0"}});
  EXPECT_FALSE(MayColorAFile());
}

TEST_F(ColorPolicyTest, NoColorWinsOverForceUnlessItIsEmpty) {
  Environment({{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}});
  EXPECT_FALSE(MayColorAFile());
  EXPECT_TRUE(NoColorIsSet());
  Environment({{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", ""}});
  EXPECT_TRUE(MayColorAFile());
}

TEST_F(ColorPolicyTest, TheFlagWinsOverTheEnvironment) {
  Environment({{"NO_COLOR", "1"}});
  SetColorChoice(ColorChoice::kAlways);
  EXPECT_TRUE(MayColorAFile());
  EXPECT_FALSE(NoColorIsSet());
  Environment({{"CLICOLOR_FORCE", "1"}});
  SetColorChoice(ColorChoice::kNever);
  EXPECT_FALSE(MayColorAFile());
}

TEST_F(ColorPolicyTest, HyperlinksNeedATerminalThatIsKnownToShowThem) {
  EXPECT_FALSE(ShowsHyperlinks());
  Environment({{"VTE_VERSION", "7200"}});
  EXPECT_TRUE(ShowsHyperlinks());
  Environment({{"VTE_VERSION", "4900"}});
  EXPECT_FALSE(ShowsHyperlinks());
  Environment({{"TERM_PROGRAM", "WezTerm"}});
  EXPECT_TRUE(ShowsHyperlinks());
  Environment({{"TERM_PROGRAM", "WezTerm"}, {"TMUX", "/tmp/x"}});
  EXPECT_FALSE(ShowsHyperlinks());
}

}  // namespace
}  // namespace vllm::app
