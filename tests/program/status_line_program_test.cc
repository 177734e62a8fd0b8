// Tests status and progress lines on a pseudo-terminal. The program must show them while it waits, and erase them
// before it prints anything else.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <string>

#include "tests/program/waiting_model_test.h"

namespace vllm::app {
namespace {

constexpr char kErase[] = "\r\x1b[K";

class StatusLineTest : public WaitingModelTest {
 protected:
  // Returns the last line that a terminal shows after `output`.
  static std::string LastLine(const std::string& output) {
    std::string line = output.substr(output.rfind('\n') + 1);
    if (const size_t erase = line.rfind(kErase); erase != std::string::npos) line = line.substr(erase + 4);
    return line;
  }
};

TEST_F(StatusLineTest, LoadingIsShownAndErasedBeforeTheAnswer) {
  WaitAtLoad();
  PtyProgram run({"run", "-m", model_, "-n", "3", "--ignore-eos", "hello"}, environment_,
                 VLLMCLI_FAULT_INJECTION_BINARY);
  ASSERT_TRUE(run.WaitFor("loading slow, ")) << run.output();
  Release();
  EXPECT_EQ(run.WaitForExit(), 0) << run.output();
  const size_t erase = run.output().rfind(kErase);
  ASSERT_NE(erase, std::string::npos);
  EXPECT_EQ(run.output().find("loading", erase), std::string::npos) << run.output();
  EXPECT_GT(run.output().size(), erase + 5) << run.output();
}

TEST_F(StatusLineTest, SignalWhileLoadingErasesTheLine) {
  WaitAtLoad();
  PtyProgram run({"run", "-m", model_, "hello"}, environment_, VLLMCLI_FAULT_INJECTION_BINARY);
  ASSERT_TRUE(run.WaitFor("loading slow, ")) << run.output();
  kill(run.pid(), SIGTERM);
  EXPECT_EQ(run.WaitForExit(), 128 + SIGTERM);
  EXPECT_EQ(LastLine(run.output()), "") << run.output();
}

TEST_F(StatusLineTest, LongPromptShowsItsProgress) {
  WaitAtCall(3);
  std::string prompt;
  for (int i = 0; i < 60; ++i) prompt += "What is the flag number " + std::to_string(i) + "? ";
  PtyProgram run(
      {"run", "-m", model_, "-n", "3", "--ignore-eos", "--max-num-batched-tokens", "64", "--max-num-seqs", "8", prompt},
      environment_, VLLMCLI_FAULT_INJECTION_BINARY);
  ASSERT_TRUE(run.WaitFor("reading prompt 128/")) << run.output();
  ASSERT_TRUE(run.WaitFor(" tokens")) << run.output();
  Release();
  EXPECT_EQ(run.WaitForExit(), 0) << run.output();
  const size_t erase = run.output().rfind(kErase);
  ASSERT_NE(erase, std::string::npos);
  EXPECT_EQ(run.output().find("reading", erase), std::string::npos) << run.output();
}

TEST_F(StatusLineTest, ChatShowsPromptProgressAndTheAnswerStartsOnACleanLine) {
  WaitAtCall(2);
  std::string prompt;
  for (int i = 0; i < 20; ++i) prompt += "What is the flag number " + std::to_string(i) + "? ";
  PtyProgram chat(
      {"chat", "-m", model_, "-n", "3", "--ignore-eos", "--max-num-batched-tokens", "64", "--max-num-seqs", "8"},
      environment_, VLLMCLI_FAULT_INJECTION_BINARY);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send(prompt + "\r");
  ASSERT_TRUE(chat.WaitFor("reading prompt 64/")) << chat.output();
  Release();
  ASSERT_TRUE(chat.WaitFor("[cut off after 3 tokens; /continue resumes it]")) << chat.output();
  const size_t erase = chat.output().rfind(kErase);
  EXPECT_EQ(chat.output().find("reading", erase), std::string::npos) << chat.output();
  chat.Send("/exit\r");
  EXPECT_EQ(chat.WaitForExit(), 0);
}

TEST_F(StatusLineTest, QuietShowsNoStatusLine) {
  WaitAtCall(1);
  PtyProgram run({"run", "-m", model_, "-n", "3", "--ignore-eos", "--quiet", "hello"}, environment_,
                 VLLMCLI_FAULT_INJECTION_BINARY);
  Release();
  EXPECT_EQ(run.WaitForExit(), 0);
  EXPECT_EQ(run.output().find('\x1b'), std::string::npos) << run.output();
}

TEST_F(StatusLineTest, BatchProgressHasATotalAndIsErasedBeforeEachRecord) {
  WaitAtCall(30);
  const std::string input = temp_.path() + "/in.jsonl";
  std::ofstream file(input);
  for (int i = 0; i < 24; ++i) file << "{\"prompt\":\"a flag\",\"ignore_eos\":true}\n\n";
  file.close();
  PtyProgram batch({"batch", "-m", model_, "-n", "8", "--max-num-seqs", "2", input}, environment_,
                   VLLMCLI_FAULT_INJECTION_BINARY);
  ASSERT_TRUE(batch.WaitFor("/24 rows, ")) << batch.output();
  Release();
  ASSERT_TRUE(batch.WaitFor("24 rows, 0 failed, ")) << batch.output();
  EXPECT_EQ(batch.WaitForExit(), 0);
  // The line on the terminal must be empty where a record starts.
  size_t num_records = 0;
  for (size_t pos = batch.output().find(",\"prompt_tokens\""); pos != std::string::npos;
       pos = batch.output().find(",\"prompt_tokens\"", pos + 1)) {
    ++num_records;
    EXPECT_EQ(LastLine(batch.output().substr(0, batch.output().rfind('{', pos))), "") << batch.output();
  }
  EXPECT_EQ(num_records, 24u);
}

TEST_F(StatusLineTest, BatchSummaryNamesTheOutputFile) {
  const std::string output = temp_.path() + "/out.jsonl";
  const ProgramResult batch =
      RunProgram({"batch", "-n", "2", "-o", output, "-"}, Input("{\"prompt\":\"a\"}\n{\"prompt\":7}\n"));
  EXPECT_EQ(batch.status, 1);
  EXPECT_EQ(batch.err.rfind("2 rows, 1 failed, ", 0), 0u) << batch.err;
  EXPECT_NE(batch.err.find("; written to " + output), std::string::npos) << batch.err;
}

}  // namespace
}  // namespace vllm::app
