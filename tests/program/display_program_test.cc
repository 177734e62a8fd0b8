// Tests on a pseudo-terminal how the chat and run show answers: --markdown, NO_COLOR, /raw, and the line with
// statistics.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "tests/program/program.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

class DisplayProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_display_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    for (const char* name : {"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"}) {
      environment_[name] = directory_.string();
    }
    answer_ = RunProgram({"run", "--seed", "1", "Who are you?"}).out;
    // The rows of the screen: the answer is one paragraph, which a terminal shows with its own line breaks.
    first_word_ = answer_.substr(0, answer_.find(' '));
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path directory_;
  std::map<std::string, std::string> environment_;
  std::string answer_;
  std::string first_word_;
};

// Returns the output of a terminal as the program wrote it.
std::string WithoutCarriageReturns(const std::string& output) {
  std::string text;
  for (const char c : output) {
    if (c != '\r') text += c;
  }
  return text;
}

TEST_F(DisplayProgramTest, WithoutMarkdownATerminalGetsTheRawText) {
  PtyProgram plain({"run", "--seed", "1", "--quiet", "--no-markdown", "Who are you?"}, environment_);
  EXPECT_EQ(plain.WaitForExit(), 0);
  EXPECT_EQ(WithoutCarriageReturns(plain.output()), answer_);
}

TEST_F(DisplayProgramTest, NoColorAndDumbTerminalsGetTheRawText) {
  for (const auto& [name, value] : {std::pair{"NO_COLOR", "1"}, std::pair{"TERM", "dumb"}}) {
    std::map<std::string, std::string> environment = environment_;
    environment[name] = value;
    PtyProgram plain({"run", "--seed", "1", "Who are you?"}, environment);
    EXPECT_EQ(plain.WaitForExit(), 0);
    EXPECT_EQ(WithoutCarriageReturns(plain.output()), answer_) << name;
  }
}

TEST_F(DisplayProgramTest, TheChatPrintsStatisticsUntilTheyAreSwitchedOff) {
  PtyProgram chat({"chat", "--seed", "1"}, environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("Who are you?\r");
  ASSERT_TRUE(chat.WaitFor(" % cached · context ")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/set stats off\r");
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  const size_t before = chat.output().size();
  chat.Send("Who are you?\r");
  ASSERT_TRUE(chat.WaitFor(first_word_)) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  EXPECT_EQ(chat.output().find(" % cached", before), std::string::npos) << chat.output();
  chat.Send("/exit\r");
  EXPECT_EQ(chat.WaitForExit(), 0);
  EXPECT_TRUE(chat.TerminalIsRestored());
}

TEST_F(DisplayProgramTest, RawPrintsTheLastAnswerAgain) {
  PtyProgram chat({"chat", "--seed", "1", "--no-stats-line"}, environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("Who are you?\r");
  ASSERT_TRUE(chat.WaitFor(first_word_)) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/raw\r");
  ASSERT_TRUE(chat.WaitFor("[answers are plain text; /raw again renders them]")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(first_word_)) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/raw\r");
  ASSERT_TRUE(chat.WaitFor("[answers are rendered as Markdown]")) << chat.output();
  chat.Send("/exit\r");
  EXPECT_EQ(chat.WaitForExit(), 0);
}

}  // namespace
}  // namespace vllm::app
