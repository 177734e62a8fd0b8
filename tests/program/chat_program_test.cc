// Runs the chat on a pseudo-terminal.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/program/program.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

class ChatProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = GuideModel();
    ASSERT_NE(model_, "");
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_chat_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    template_ = (directory_ / "t.jinja").string();
    std::ofstream(template_) << "{% for m in messages %}{{ m.content }}\n{% endfor %}";
    environment_ = {{"XDG_STATE_HOME", directory_.string()}, {"XDG_CONFIG_HOME", directory_.string()}};
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }
  std::vector<std::string> Chat(std::vector<std::string> flags = {}) const {
    flags.insert(flags.begin(), {"chat", "-m", model_, "--chat-template", template_, "-t", "0", "--ignore-eos"});
    return flags;
  }

  std::string model_;
  fs::path directory_;
  std::string template_;
  std::map<std::string, std::string> environment_;
};

TEST_F(ChatProgramTest, TurnIsAnsweredAndControlDQuits) {
  PtyProgram chat(Chat({"-n", "10"}), environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("Once upon a time\r");
  ASSERT_TRUE(chat.WaitFor("[cut off after 10 tokens; /continue resumes it]")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> "));
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  EXPECT_TRUE(chat.TerminalIsRestored());
}

TEST_F(ChatProgramTest, ControlCStopsTheAnswerAndTheNextTurnWorks) {
  // Without Ctrl-C, the answer would repeat " x" until the context is full, and the chat would print "[cut off".
  const std::string x = GuideTokenId("x");
  ASSERT_NE(x, "");
  model_ = CopyGuideModel(directory_ / "long", {.context = 100000});
  PtyProgram chat(Chat({"--max-model-len", "30000", "--kv-cache-memory", "64M", "--allowed-token-ids", x}),
                  environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("Once\r");
  ASSERT_TRUE(chat.WaitFor(" x x x")) << chat.output();
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  EXPECT_EQ(chat.output().find("[cut off"), std::string::npos);
  chat.Send("/set max-tokens 5\r");
  ASSERT_TRUE(chat.WaitFor(">>> "));
  chat.Send("day\r");
  ASSERT_TRUE(chat.WaitFor(" x x x")) << chat.output();
  ASSERT_TRUE(chat.WaitFor("[cut off after 5 tokens; /continue resumes it]")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> "));
  chat.Send("/exit\r");
  EXPECT_EQ(chat.WaitForExit(), 0);
  EXPECT_TRUE(chat.TerminalIsRestored());
}

TEST_F(ChatProgramTest, SecondTurnFindsTheFirstInThePrefixCache) {
  PtyProgram chat(Chat({"-n", "40"}), environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("Once upon a time there was a cat and a dog\r");
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("And then\r");
  ASSERT_TRUE(chat.WaitFor("[cut off after 40 tokens; /continue resumes it]")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  const size_t before = chat.output().size();
  chat.Send("/stats\r");
  ASSERT_TRUE(chat.WaitFor("engine:")) << chat.output();
  const std::string stats = chat.output().substr(before);
  const size_t open = stats.find('(');
  ASSERT_NE(open, std::string::npos) << stats;
  EXPECT_GE(std::stoi(stats.substr(open + 1)), 32) << stats;
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
}

TEST_F(ChatProgramTest, ControlCClearsTheLineAndTwoInARowQuit) {
  PtyProgram chat(Chat(), environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("half a line");
  ASSERT_TRUE(chat.WaitFor("half a line")) << chat.output();  // a terminal drops unread keys on Ctrl-C
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor("\n>>> ")) << chat.output();
  // "/help" is a command only if Ctrl-C has cleared the line. After a command, the next Ctrl-C is the first of two.
  chat.Send("/help\r");
  ASSERT_TRUE(chat.WaitFor("list these commands")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor("Ctrl-D or /exit quits.")) << chat.output();
  ASSERT_TRUE(chat.WaitFor("\n>>> ")) << chat.output();
  chat.Send("\x03");
  EXPECT_EQ(chat.WaitForExit(), 130);
  EXPECT_TRUE(chat.TerminalIsRestored());
}

TEST_F(ChatProgramTest, SignalsRestoreTheTerminal) {
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGABRT}) {
    PtyProgram chat(Chat(), environment_);
    ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
    kill(chat.pid(), number);
    EXPECT_EQ(chat.WaitForExit(), 128 + number);
    EXPECT_TRUE(chat.TerminalIsRestored()) << number;
  }
}

TEST_F(ChatProgramTest, PastedTextOfSeveralLinesIsOneMessage) {
  PtyProgram chat(Chat({"-n", "3"}), environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("\x1b[200~one\ntwo\nthree\x1b[201~\r");
  ASSERT_TRUE(chat.WaitFor("[cut off after 3 tokens; /continue resumes it]")) << chat.output();
  chat.Send("/show\r");
  ASSERT_TRUE(chat.WaitFor("1 turn\r\n")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
}

TEST_F(ChatProgramTest, TabCompletesSlashCommandsAndTyposGetASuggestion) {
  PtyProgram chat(Chat(), environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/he\t\r");
  ASSERT_TRUE(chat.WaitFor("list these commands")) << chat.output();
  chat.Send("/stast\r");
  ASSERT_TRUE(chat.WaitFor("did you mean /stats?")) << chat.output();
  chat.Send("/set top-p 7\r");
  ASSERT_TRUE(chat.WaitFor("top_p")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
}

TEST_F(ChatProgramTest, DumbTerminalGetsNoEscapeByte) {
  environment_["TERM"] = "dumb";
  PtyProgram chat(Chat({"-n", "3"}), environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("Once\r");
  ASSERT_TRUE(chat.WaitFor("[cut off")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  EXPECT_EQ(chat.output().find('\x1b'), std::string::npos) << chat.output();
}

TEST_F(ChatProgramTest, HistoryIsReadableOnlyByItsOwner) {
  {
    PtyProgram chat(Chat({"-n", "2"}), environment_);
    ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
    chat.Send("secret words\r");
    ASSERT_TRUE(chat.WaitFor("[cut off")) << chat.output();
    chat.Send("\x04");
    EXPECT_EQ(chat.WaitForExit(), 0);
  }
  struct stat status {};
  ASSERT_EQ(stat((directory_ / "vllmcli" / "history").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  PtyProgram chat(Chat({"-n", "2"}), environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("\x1b[A");
  EXPECT_TRUE(chat.WaitFor("secret words")) << chat.output();
}

TEST_F(ChatProgramTest, SuspendAndContinueKeepTheLine) {
  PtyProgram chat(Chat(), environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/hel");
  ASSERT_TRUE(chat.WaitFor("/hel"));
  kill(chat.pid(), SIGTSTP);
  ASSERT_TRUE(chat.WaitForStop());
  EXPECT_TRUE(chat.TerminalIsRestored());
  kill(chat.pid(), SIGCONT);
  ASSERT_TRUE(chat.WaitFor("/hel")) << chat.output();
  chat.Send("p\r");
  EXPECT_TRUE(chat.WaitFor("list these commands")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
}

TEST_F(ChatProgramTest, DroppedTurnsAreReported) {
  PtyProgram chat(Chat({"-n", "20", "--max-model-len", "64"}), environment_);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  for (int i = 0; i < 3; ++i) {
    chat.Send("Once upon a time\r");
    ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  }
  EXPECT_NE(chat.output().find(" dropped]"), std::string::npos) << chat.output();
}

}  // namespace
}  // namespace vllm::app
