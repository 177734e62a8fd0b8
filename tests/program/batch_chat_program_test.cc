// Tests batch --chat on a pseudo-terminal: the rows are written while the user types, chooses from a list, or leaves.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/program/waiting_model_test.h"

namespace vllm::app {
namespace {

// The batch has twelve rows. The model waits in its second step.
class BatchChatTest : public WaitingModelTest {
 protected:
  void SetUp() override {
    WaitingModelTest::SetUp();
    WaitAtCall(2);
    std::string rows;
    for (int i = 0; i < kNumRows; ++i) rows += "{\"prompt\":\"a flag\",\"ignore_eos\":true}\n";
    input_ = temp_.Write("in.jsonl", rows);
  }

  // Starts the batch and waits for the prompt of its chat.
  PtyProgram& Start(const std::string& output) {
    const std::vector<std::string> arguments = {"batch", "-m",   model_, "-n",   "8",     "--max-num-seqs",
                                                "2",     input_, "-o",   output, "--chat"};
    chat_ = std::make_unique<PtyProgram>(arguments, environment_, VLLMCLI_FAULT_INJECTION_BINARY);
    EXPECT_TRUE(chat_->WaitFor(">>> ")) << chat_->output();
    return *chat_;
  }
  static bool ShowsPicker(const TerminalEmulator& terminal) {
    return terminal.state().alternate_screen && terminal.Screen().find("q: back") != std::string::npos;
  }
  void OpenPicker() {
    chat_->Send("/resume\r");
    EXPECT_TRUE(chat_->WaitForScreen(ShowsPicker)) << chat_->terminal().Screen();
  }
  void ExpectExit(int status) {
    EXPECT_EQ(chat_->WaitForExit(), status) << chat_->output();
    EXPECT_TRUE(chat_->TerminalIsRestored());
  }
  int NumRecords() const {
    std::ifstream file(output_);
    int count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }

  static constexpr int kNumRows = 12;
  std::string input_;
  std::string output_ = temp_.path() + "/out.jsonl";
  std::unique_ptr<PtyProgram> chat_;
};

TEST_F(BatchChatTest, RowsAreWrittenWhileTheUserTypes) {
  PtyProgram& chat = Start(output_);
  chat.Send("a draft");
  ASSERT_TRUE(chat.WaitFor("a draft")) << chat.output();
  Release();
  ASSERT_TRUE(chat.WaitFor("[the batch is done: 12/12 rows, ")) << chat.output();
  EXPECT_EQ(NumRecords(), kNumRows);
  chat.Send("\x15\x04");
  ExpectExit(0);
}

TEST_F(BatchChatTest, RowsAreWrittenWhileAPickerIsShown) {
  PtyProgram& chat = Start(output_);
  OpenPicker();
  Release();
  EXPECT_TRUE(chat.WaitForScreen([&](const TerminalEmulator&) { return NumRecords() == kNumRows; })) << NumRecords();
  EXPECT_TRUE(ShowsPicker(chat.terminal())) << chat.terminal().Screen();
  chat.Send("q");
  ASSERT_TRUE(chat.WaitFor("[the batch is done: 12/12 rows, ")) << chat.output();
  chat.Send("\x04");
  ExpectExit(0);
}

TEST_F(BatchChatTest, FailedWriteWhileAPickerIsShownEndsTheBatch) {
  PtyProgram& chat = Start("/dev/full");
  OpenPicker();
  Release();
  ASSERT_TRUE(chat.WaitFor("writing /dev/full: No space left on device")) << chat.output();
  chat.Send("\x04");
  ExpectExit(4);
}

TEST_F(BatchChatTest, LeavingTheChatRunsTheRestOfTheBatch) {
  PtyProgram& chat = Start(output_);
  chat.Send("\x04");
  ASSERT_TRUE(chat.WaitFor("/12 rows, ")) << chat.output();
  Release();
  ASSERT_TRUE(chat.WaitFor("12 rows, 0 failed, ")) << chat.output();
  ExpectExit(0);
  EXPECT_EQ(NumRecords(), kNumRows);
}

}  // namespace
}  // namespace vllm::app
