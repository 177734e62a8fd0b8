// Tests batch --chat on a pseudo-terminal: the rows are written while the user types, chooses from a list, or leaves.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/program/waiting_model_test.h"

namespace vllm::app {
namespace {

// Twelve rows, of which four are in the engine at a time. The model waits in the second step.
class BatchChatTest : public WaitingModelTest {
 protected:
  void SetUp() override {
    WaitingModelTest::SetUp();
    WaitAtCall(2);
    output_ = (directory_ / "out.jsonl").string();
    std::ofstream file(directory_ / "in.jsonl");
    for (int i = 0; i < kNumRows; ++i) file << "{\"prompt\":\"a flag\",\"ignore_eos\":true}\n";
  }

  PtyProgram Start(const std::string& output = "") const {
    return PtyProgram({"batch", "-m", model(), "-n", "8", "--max-num-seqs", "2", (directory_ / "in.jsonl").string(),
                       "-o", output.empty() ? output_ : output, "--chat"},
                      environment_, VLLMCLI_FAULT_INJECTION_BINARY);
  }
  int NumRecords() const {
    std::ifstream file(output_);
    int count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }

  static bool ShowsPicker(const TerminalEmulator& terminal) {
    return terminal.state().alternate_screen && terminal.Screen().find("q: back") != std::string::npos;
  }

  static constexpr int kNumRows = 12;
  std::string output_;
};

TEST_F(BatchChatTest, RowsAreWrittenWhileTheUserTypes) {
  PtyProgram chat = Start();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("a draft");
  ASSERT_TRUE(chat.WaitFor("a draft")) << chat.output();
  Release();
  ASSERT_TRUE(chat.WaitFor("[the batch is done: 12/12 rows, ")) << chat.output();
  EXPECT_EQ(NumRecords(), kNumRows);
  chat.Send("\x15\x04");
  EXPECT_EQ(chat.WaitForExit(), 0) << chat.output();
  EXPECT_TRUE(chat.TerminalIsRestored());
}

TEST_F(BatchChatTest, RowsAreWrittenWhileAPickerIsShown) {
  PtyProgram chat = Start();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/resume\r");
  ASSERT_TRUE(chat.WaitForScreen(ShowsPicker)) << chat.terminal().Screen();
  Release();
  EXPECT_TRUE(chat.WaitForScreen([&](const TerminalEmulator&) { return NumRecords() == kNumRows; })) << NumRecords();
  EXPECT_TRUE(ShowsPicker(chat.terminal())) << chat.terminal().Screen();
  chat.Send("q");
  ASSERT_TRUE(chat.WaitFor("[the batch is done: 12/12 rows, ")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0) << chat.output();
  EXPECT_TRUE(chat.TerminalIsRestored());
}

TEST_F(BatchChatTest, AFailureThatACommandReportsEndsTheBatch) {
  PtyProgram chat = Start("/dev/full");
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/resume\r");
  ASSERT_TRUE(chat.WaitForScreen(ShowsPicker)) << chat.terminal().Screen();
  Release();
  ASSERT_TRUE(chat.WaitFor("writing /dev/full: No space left on device")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 4) << chat.output();
  EXPECT_TRUE(chat.TerminalIsRestored());
}

TEST_F(BatchChatTest, LeavingTheChatRunsTheRestOfTheBatch) {
  PtyProgram chat = Start();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("\x04");
  ASSERT_TRUE(chat.WaitFor("/12 rows, ")) << chat.output();
  Release();
  ASSERT_TRUE(chat.WaitFor("12 rows, 0 failed, ")) << chat.output();
  EXPECT_EQ(chat.WaitForExit(), 0) << chat.output();
  EXPECT_EQ(NumRecords(), kNumRows);
}

}  // namespace
}  // namespace vllm::app
