// Runs `batch --chat` on a pseudo-terminal. Its records and answers must equal those of separate runs, and signals and
// failed rows must lead to the same exit status. Also tests which flags are rejected.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/program/chats_test.h"

namespace vllm::app {
namespace {

class BatchChatResultsTest : public ChatsProgramTest {
 protected:
  static constexpr int kEndless = 90000;  // tokens of a row that does not end before the test does
  static constexpr const char* kQuestion = "How do I run a batch?";

  void SetUp() override {
    ChatsProgramTest::SetUp();
    model_ = CopyGuideModel(temp_.path() + "/model", {.context = 100'000});
  }

  // Writes an input file in which each row has this many output tokens, and returns its path.
  std::string WriteRows(const std::vector<int>& max_tokens) const {
    std::string rows;
    for (size_t i = 0; i < max_tokens.size(); ++i) {
      const std::string id = std::to_string(i);
      rows += Json({{"custom_id", id}, {"prompt", "Question " + id + ": why?"}, {"max_tokens", max_tokens[i]}}).dump();
      rows += "\n";
    }
    return temp_.Write("in.jsonl", rows);
  }
  std::string Output(const std::string& user) const { return temp_.path() + "/" + user + ".jsonl"; }
  Flags BatchFlags(const std::string& user, const std::string& input, const Flags& more = {}) const {
    Flags flags = {"batch", input, "-m", model_,         "-o",           Output(user), "--max-num-seqs",
                   "4",     "-t",  "0",  "--ignore-eos", "--max-tokens", "20",         "--kv-cache-memory",
                   "256M"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  std::map<std::string, std::string> Environment(const std::string& user) const {
    std::map<std::string, std::string> environment = As(user).environment;
    environment["XDG_STATE_HOME"] = temp_.path();
    environment["LC_ALL"] = "C.UTF-8";
    return environment;
  }
  std::map<std::string, Json> Records(const std::string& user) const { return ReadBatchRecords(Output(user)); }
  // Asks the question in a chat that runs alone, and returns the conversation.
  Json ChatAlone() const {
    Flags flags = {"chat", "-m", model_, "-t", "0", "--ignore-eos", "--max-tokens", "20", "--kv-cache-memory", "256M"};
    const ProgramResult result = RunProgram(flags, As("alone", std::string(kQuestion) + "\n"));
    EXPECT_EQ(result.status, 0) << result.err;
    return Branch(Show("alone"));
  }
  // Types the question and waits for the prompt that follows the answer.
  static bool Ask(PtyProgram& program) {
    program.Send(std::string(kQuestion) + "\r");
    return program.WaitForScreen([](const TerminalEmulator& terminal) {
      return terminal.Screen().find(std::string(">>> ") + kQuestion) != std::string::npos &&
             terminal.Row(terminal.cursor().row) == ">>>";
    });
  }
  // Runs a batch on a terminal, expects that it is rejected, and returns its output.
  std::string Rejection(const Flags& flags) const {
    PtyProgram batch(flags, Environment("rejected"));
    EXPECT_EQ(batch.WaitForExit(), 2);
    return batch.output();
  }
};

TEST_F(BatchChatResultsTest, RowsAndAnswerEqualThoseOfSeparateRuns) {
  const std::string input = WriteRows(std::vector<int>(20, 300));
  ASSERT_EQ(RunProgram(BatchFlags("alone", input)).status, 0);
  const std::map<std::string, Json> expected = Records("alone");
  ASSERT_EQ(expected.size(), 20u);
  const Json expected_chat = ChatAlone();
  ASSERT_EQ(expected_chat.size(), 2u);

  PtyProgram batch(BatchFlags("both", input, {"--chat"}), Environment("both"));
  ASSERT_TRUE(batch.WaitFor(">>> ")) << batch.output();
  ASSERT_TRUE(Ask(batch)) << batch.output();
  // The batch must have run during the answer.
  EXPECT_LT(Records("both").size(), 20u);
  // Ctrl-D ends only the chat.
  batch.Send("\x04");
  EXPECT_EQ(batch.WaitForExit(), 0);
  EXPECT_TRUE(batch.TerminalIsRestored());
  EXPECT_EQ(Records("both"), expected);
  EXPECT_EQ(Branch(Show("both")), expected_chat);
}

TEST_F(BatchChatResultsTest, FinishedBatchLeavesTheChatUsable) {
  const Json expected_chat = ChatAlone();
  PtyProgram batch(BatchFlags("both", WriteRows({5, 5, 5}), {"--chat"}), Environment("both"));
  ASSERT_TRUE(batch.WaitFor("[the batch is done: 3/3 rows")) << batch.output();
  ASSERT_TRUE(Ask(batch)) << batch.output();
  EXPECT_EQ(Records("both").size(), 3u);
  batch.Send("/engine\r");
  EXPECT_TRUE(batch.WaitForScreen([](const TerminalEmulator& terminal) {
    return terminal.Screen().find("3 of 3 rows, 0 failed") != std::string::npos;
  }));
  batch.Send("q");
  ASSERT_TRUE(batch.WaitForScreen([](const TerminalEmulator& terminal) { return !terminal.state().alternate_screen; }));
  batch.Send("\x04");
  EXPECT_EQ(batch.WaitForExit(), 0);
  EXPECT_EQ(Branch(Show("both")), expected_chat);
}

TEST_F(BatchChatResultsTest, FailedRowMakesTheExitStatusOneAfterTheChat) {
  const std::string input = WriteRows({5, 5});
  std::ofstream(input, std::ios::app) << "{broken\n";
  PtyProgram batch(BatchFlags("both", input, {"--chat", "--format", "text"}), Environment("both"));
  ASSERT_TRUE(batch.WaitFor("[the batch is done: ")) << batch.output();
  EXPECT_EQ(batch.output().find("line 3:"), std::string::npos);
  batch.Send("\x04");
  EXPECT_TRUE(batch.WaitFor("vllmcli: line 3: "));
  EXPECT_EQ(batch.WaitForExit(), 1);
}

TEST_F(BatchChatResultsTest, SigtermAtThePromptEndsTheChatAndTheBatch) {
  PtyProgram batch(BatchFlags("both", WriteRows({5, kEndless}), {"--chat"}), Environment("both"));
  ASSERT_TRUE(batch.WaitFor(">>> ")) << batch.output();
  ASSERT_TRUE(batch.WaitForScreen([&](const TerminalEmulator&) { return !Records("both").empty(); }));
  kill(batch.pid(), SIGTERM);
  EXPECT_EQ(batch.WaitForExit(), 128 + SIGTERM);
  EXPECT_TRUE(batch.TerminalIsRestored());
  EXPECT_EQ(Records("both").size(), 1u);
}

TEST_F(BatchChatResultsTest, SigtermDuringAnAnswerEndsTheChatAndTheBatch) {
  const Flags endless_answer = {"--chat", "--allowed-token-ids", GuideTokenId("x"), "--max-tokens",
                                std::to_string(kEndless)};
  PtyProgram batch(BatchFlags("both", WriteRows({kEndless}), endless_answer), Environment("both"));
  ASSERT_TRUE(batch.WaitFor(">>> ")) << batch.output();
  batch.Send(std::string(kQuestion) + "\r");
  ASSERT_TRUE(batch.WaitFor(" x x x")) << batch.output();
  kill(batch.pid(), SIGTERM);
  EXPECT_EQ(batch.WaitForExit(), 128 + SIGTERM);
  EXPECT_TRUE(batch.TerminalIsRestored());
  EXPECT_TRUE(Records("both").empty());
}

TEST_F(BatchChatResultsTest, PipeIsRejected) {
  const ProgramResult result = RunProgram(BatchFlags("rejected", WriteRows({5}), {"--chat"}));
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("batch --chat: needs a terminal for the chat"), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(Output("rejected")));
}

TEST_F(BatchChatResultsTest, StandardOutputIsRejectedForTheAnswers) {
  const std::string input = WriteRows({5});
  for (const Flags& flags :
       {Flags{"batch", input, "-m", model_, "--chat"}, Flags{"batch", input, "-m", model_, "--chat", "-o", "-"}}) {
    const std::string output = Rejection(flags);
    EXPECT_NE(output.find("batch --chat: needs --output"), std::string::npos) << output;
  }
}

TEST_F(BatchChatResultsTest, StreamIsRejectedAsInput) {
  const std::string output = Rejection(BatchFlags("rejected", "-", {"--chat"}));
  EXPECT_NE(output.find("batch --chat: INPUT must be a file with rows"), std::string::npos) << output;
}

TEST_F(BatchChatResultsTest, LiveViewIsRejected) {
  const std::string output = Rejection(BatchFlags("rejected", WriteRows({5}), {"--chat", "--live"}));
  EXPECT_NE(output.find("batch --chat: cannot be combined with --live"), std::string::npos) << output;
}

TEST_F(BatchChatResultsTest, ExistingOutputIsRejected) {
  const std::string file = temp_.Write("rejected.jsonl", "a record\n");
  const std::string output = Rejection(BatchFlags("rejected", WriteRows({5}), {"--chat"}));
  EXPECT_NE(output.find("--overwrite"), std::string::npos) << output;
  EXPECT_EQ(std::filesystem::file_size(file), 9u);
}

}  // namespace
}  // namespace vllm::app
