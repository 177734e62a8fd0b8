// Runs the live view next to a batch and in a chat, as a user would, and checks that watching changes no result.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "app/live/live_directory.h"
#include "tests/program/program.h"
#include "tests/support/terminal_emulator.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class TopProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(GuideModel(), "");
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_top_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    fs::permissions(directory_, fs::perms::owner_all);
    model_ = CopyGuideModel(directory_ / "model", {.context = 100000});
    environment_ = {{"XDG_RUNTIME_DIR", directory_.string()},
                    {"XDG_DATA_HOME", directory_.string()},
                    {"XDG_STATE_HOME", directory_.string()},
                    {"LC_ALL", "C.UTF-8"}};
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }

  // Writes an input file in which each row has this many output tokens, and returns its path.
  std::string WriteRows(const std::vector<int>& max_tokens) {
    const std::string path = (directory_ / "in.jsonl").string();
    std::ofstream file(path);
    for (size_t i = 0; i < max_tokens.size(); ++i) {
      file << Json({{"custom_id", "row " + std::to_string(i)},
                    {"prompt", "Question " + std::to_string(i) + ": how do I run a batch?"},
                    {"max_tokens", max_tokens[i]},
                    {"temperature", i % 2 == 0 ? 0.0 : 0.9},
                    {"ignore_eos", true}})
                  .dump()
           << "\n";
    }
    return path;
  }
  std::string Output() const { return (directory_ / "out.jsonl").string(); }
  std::vector<std::string> BatchArguments(const std::string& input, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {
        "batch", input, "-m", model_, "-o", Output(), "--overwrite", "--max-num-seqs", "4", "--kv-cache-memory",
        "256M"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  ProgramResult Run(const std::vector<std::string>& arguments) const {
    ProgramOptions options;
    options.environment = environment_;
    return RunProgram(arguments, options);
  }
  std::map<std::string, Json> Records() const { return ReadBatchRecords(Output()); }
  // Waits until top finds a process.
  void AwaitProcess() const {
    while (Run({"top", "--json"}).status != 0) {
    }
  }
  static bool Shows(const TerminalEmulator& terminal, const std::string& text) {
    return terminal.Screen().find(text) != std::string::npos;
  }
  static bool WaitForText(PtyProgram& program, const std::string& text) {
    return program.WaitForScreen([&text](const TerminalEmulator& terminal) { return Shows(terminal, text); });
  }

  static constexpr int kEndless = 90000;

  std::string model_;
  fs::path directory_;
  std::map<std::string, std::string> environment_;
};

TEST_F(TopProgramTest, NoProcessIsAnErrorWithAHint) {
  const ProgramResult result = Run({"top", "--json"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err,
            "vllmcli: top: no vllmcli runs a model for this user; start one, for example vllmcli chat, and run top "
            "again\n");
}

TEST_F(TopProgramTest, PipeIsAnErrorWithAHint) {
  const ProgramResult result = Run({"top"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err, "vllmcli: top: needs a terminal; --json prints the same as JSON\n");
}

TEST_F(TopProgramTest, WordThatIsNoProcessIdIsAnError) {
  const ProgramResult result = Run({"top", "12x", "--json"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err, "vllmcli: top: not a process id (12x)\n");
}

TEST_F(TopProgramTest, ProcessOfAnotherVersionEndsTheView) {
  fs::create_directory(directory_ / "vllmcli");
  fs::permissions(directory_ / "vllmcli", fs::perms::owner_all);
  const tokenizer::UniqueFd listening(ListenLiveSocket((directory_ / "vllmcli/111.sock").string()));
  ASSERT_TRUE(listening.valid());
  std::thread other([&listening] {
    std::vector<tokenizer::UniqueFd> viewers;
    while (true) {
      pollfd fd = {listening.get(), POLLIN, 0};
      poll(&fd, 1, -1);
      tokenizer::UniqueFd viewer(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!viewer.valid()) return;
      send(viewer.get(), "VLLV\x09\x00\x01\x00\x02\x00\x00\x00{}", 14, MSG_NOSIGNAL);
      viewers.push_back(std::move(viewer));
    }
  });
  PtyProgram top({"top"}, environment_);
  EXPECT_EQ(top.WaitForExit(), 4);
  EXPECT_NE(top.terminal().Screen().find("vllmcli: process 111: is another version of vllmcli"), std::string::npos)
      << top.terminal().Screen();
  EXPECT_TRUE(top.TerminalIsRestored());
  shutdown(listening.get(), SHUT_RDWR);
  other.join();
}

TEST_F(TopProgramTest, JsonDescribesARunningBatch) {
  PtyProgram batch(BatchArguments(WriteRows({kEndless, kEndless})), environment_);
  AwaitProcess();
  Json frame;
  do {
    frame = Json::parse(Run({"top", std::to_string(batch.pid()), "--json"}).out);
  } while (frame["requests"].size() < 2 || frame["requests"][1]["output_tokens"] == 0);
  EXPECT_EQ(frame["process"]["pid"], batch.pid());
  EXPECT_EQ(frame["process"]["command"], "batch");
  EXPECT_EQ(frame["requests"][1]["request_id"], "row:row 1");
  EXPECT_EQ(frame["requests"][1]["state"], "writing");
  EXPECT_EQ(frame["requests"][1]["max_tokens"], kEndless);
  EXPECT_EQ(frame["batch"]["rows_done"], 0);
  EXPECT_EQ(Run({"top", "1", "--json"}).status, 1);
  kill(batch.pid(), SIGTERM);
  EXPECT_EQ(batch.WaitForExit(), 128 + SIGTERM);
  EXPECT_EQ(Run({"top", "--json"}).status, 1);
}

TEST_F(TopProgramTest, UnpublishedProcessIsNotShown) {
  PtyProgram batch(BatchArguments(WriteRows({kEndless}), {"--no-publish", "--live"}), environment_);
  ASSERT_TRUE(WaitForText(batch, "running 1"));
  EXPECT_EQ(Run({"top", "--json"}).status, 1);
  batch.Send("qy");
  EXPECT_EQ(batch.WaitForExit(), 1);
}

TEST_F(TopProgramTest, WatchedPausedAndResumedBatchHasTheSameResults) {
  const std::string input = WriteRows(std::vector<int>(24, 300));
  ASSERT_EQ(Run(BatchArguments(input)).status, 0);
  const std::map<std::string, Json> expected = Records();
  ASSERT_EQ(expected.size(), 24u);

  // The batch reads from a FIFO and gets its last rows only when it is paused, so it cannot end before. A shell writes,
  // because every process that this test starts would inherit a descriptor of the test.
  const std::string fifo = (directory_ / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::string go = (directory_ / "go").string();
  const std::string script = "(head -n 12 " + input + "; until [ -e " + go + " ] || [ ! -e " + input +
                             " ]; do sleep 0.02; done; tail -n +13 " + input + ") >" + fifo + " &";
  ASSERT_EQ(std::system(script.c_str()), 0);
  PtyProgram batch(BatchArguments(fifo, {"--input-format", "jsonl"}), environment_);
  AwaitProcess();
  PtyProgram top({"top"}, environment_);
  ASSERT_TRUE(WaitForText(top, "running"));
  top.Send("p");
  // The running rows finish, and no other row starts.
  ASSERT_TRUE(WaitForText(top, "PAUSED running 0"));
  std::ofstream(go) << "go";
  ASSERT_TRUE(top.WaitForScreen([](const TerminalEmulator& terminal) {
    return Shows(terminal, "PAUSED running 0") && !Shows(terminal, "waiting 0");
  }));
  EXPECT_LT(Records().size(), 24u);
  top.Send("p");
  EXPECT_EQ(batch.WaitForExit(), 0);
  EXPECT_EQ(top.WaitForExit(), 0);
  EXPECT_TRUE(top.TerminalIsRestored());
  EXPECT_FALSE(top.terminal().state().alternate_screen);
  EXPECT_EQ(Records(), expected);
}

TEST_F(TopProgramTest, AbortedRowIsAnErrorAndTheOthersAreTheSame) {
  ASSERT_EQ(Run(BatchArguments(WriteRows({200, 200, 200}))).status, 0);
  std::map<std::string, Json> expected = Records();

  PtyProgram batch(BatchArguments(WriteRows({200, 200, kEndless})), environment_);
  AwaitProcess();
  PtyProgram top({"top"}, environment_);
  ASSERT_TRUE(WaitForText(top, "running 1,"));
  top.Send("k");
  ASSERT_TRUE(WaitForText(top, "abort request row:row 2? y/n"));
  top.Send("y");
  EXPECT_EQ(batch.WaitForExit(), 1);
  const std::map<std::string, Json> records = Records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records.at("row 2")["error"]["code"], "aborted");
  EXPECT_EQ(records.at("row 0"), expected.at("row 0"));
  EXPECT_EQ(records.at("row 1"), expected.at("row 1"));
}

TEST_F(TopProgramTest, LiveBatchStopsOnQAndKeepsTheFinishedRows) {
  PtyProgram batch(BatchArguments(WriteRows({5, 5, kEndless, kEndless}), {"--live"}), environment_);
  ASSERT_TRUE(WaitForText(batch, "2 of 4 rows"));
  EXPECT_TRUE(batch.terminal().state().alternate_screen);
  batch.Send("q");
  ASSERT_TRUE(WaitForText(batch, "stop the batch? rows that are done are kept. y/n"));
  batch.Send("n");
  ASSERT_TRUE(WaitForText(batch, "q quit"));
  batch.Send("q");
  ASSERT_TRUE(WaitForText(batch, "y/n"));
  batch.Send("y");
  EXPECT_EQ(batch.WaitForExit(), 1);
  EXPECT_FALSE(batch.terminal().state().alternate_screen);
  EXPECT_TRUE(batch.terminal().state().cursor_visible);
  EXPECT_TRUE(batch.TerminalIsRestored());
  EXPECT_NE(batch.output().find("vllmcli: batch stopped: the rows that were done before are in"), std::string::npos);
  EXPECT_EQ(Records().size(), 2u);
}

TEST_F(TopProgramTest, StoppedOrderedBatchKeepsRowsBehindTheRunningOne) {
  PtyProgram batch(BatchArguments(WriteRows({5, kEndless, 5, 5}), {"--live", "--ordered"}), environment_);
  ASSERT_TRUE(WaitForText(batch, "3 of 4 rows"));
  EXPECT_EQ(Records().size(), 1u);
  batch.Send("qy");
  EXPECT_EQ(batch.WaitForExit(), 1);
  const std::map<std::string, Json> records = Records();
  EXPECT_EQ(records.size(), 3u);
  EXPECT_FALSE(records.contains("row 1"));
}

TEST_F(TopProgramTest, LiveBatchHasTheSameResultsAndPrintsItsErrorsAtTheEnd) {
  const std::string input = WriteRows(std::vector<int>(12, 50));
  std::ofstream(input, std::ios::app) << "{broken\n";
  EXPECT_EQ(Run(BatchArguments(input)).status, 1);
  std::ifstream file(Output());
  std::vector<std::string> expected((std::istream_iterator<std::string>(file)), {});
  std::sort(expected.begin(), expected.end());

  PtyProgram batch(BatchArguments(input, {"--live"}), environment_);
  EXPECT_EQ(batch.WaitForExit(), 1);
  EXPECT_NE(batch.terminal().Screen().find("vllmcli: line 13: "), std::string::npos) << batch.terminal().Screen();
  std::ifstream live_file(Output());
  std::vector<std::string> words((std::istream_iterator<std::string>(live_file)), {});
  std::sort(words.begin(), words.end());
  EXPECT_EQ(words, expected);
}

TEST_F(TopProgramTest, LiveNeedsATerminal) {
  const ProgramResult result = Run(BatchArguments(WriteRows({5}), {"--live"}));
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("--live: needs a terminal"), std::string::npos) << result.err;
}

TEST_F(TopProgramTest, ViewFollowsTheSizeOfTheTerminal) {
  PtyProgram batch(BatchArguments(WriteRows({kEndless}), {"--live"}), environment_);
  ASSERT_TRUE(WaitForText(batch, "KV blocks"));
  for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{{5, 20}, {1, 1}, {60, 200}, {2, 3}, {24, 80}}) {
    batch.Resize(rows, columns);
    if (rows == 5) {
      ASSERT_TRUE(WaitForText(batch, "q quit  h help\n"));
    }
    if (rows == 60) {
      ASSERT_TRUE(WaitForText(batch, "END OF PROMPT"));
    }
  }
  ASSERT_TRUE(WaitForText(batch, "KV blocks"));
  kill(batch.pid(), SIGTERM);
  EXPECT_EQ(batch.WaitForExit(), 128 + SIGTERM);
  EXPECT_TRUE(batch.TerminalIsRestored());
  EXPECT_FALSE(batch.terminal().state().alternate_screen);
}

TEST_F(TopProgramTest, ViewThatASignalEndsLeavesTheRunningRowsTimeToFinish) {
  for (const bool is_key : {true, false}) {
    PtyProgram batch(BatchArguments(WriteRows({5, kEndless}), {"--live"}), environment_);
    ASSERT_TRUE(WaitForText(batch, "1 of 2 rows"));
    if (is_key) {
      batch.Send("\x03");
    } else {
      kill(batch.pid(), SIGTERM);
    }
    ASSERT_TRUE(WaitForText(batch, "[stopping: the rows that run have 3 s to finish; Ctrl-C again stops at once]"));
    EXPECT_FALSE(batch.terminal().state().alternate_screen);
    batch.Send("\x03");
    EXPECT_EQ(batch.WaitForExit(), 128 + SIGINT);
    EXPECT_TRUE(batch.TerminalIsRestored());
    EXPECT_TRUE(Shows(batch.terminal(), "--resume continues the job"));
    EXPECT_EQ(Records().size(), 1u);
  }
}

TEST_F(TopProgramTest, CrashLeavesTheAlternateScreen) {
  PtyProgram batch(BatchArguments(WriteRows({kEndless}), {"--live"}), environment_);
  ASSERT_TRUE(WaitForText(batch, "KV blocks"));
  kill(batch.pid(), SIGSEGV);
  EXPECT_EQ(batch.WaitForExit(), 128 + SIGSEGV);
  EXPECT_TRUE(batch.TerminalIsRestored());
  EXPECT_FALSE(batch.terminal().state().alternate_screen);
  EXPECT_TRUE(batch.terminal().state().cursor_visible);
  // The socket of the dead process is removed.
  EXPECT_EQ(Run({"top", "--json"}).status, 1);
  EXPECT_TRUE(fs::is_empty(directory_ / "vllmcli"));
}

TEST_F(TopProgramTest, SuspendedViewRestoresTheTerminalAndContinues) {
  PtyProgram batch(BatchArguments(WriteRows({kEndless}), {"--live"}), environment_);
  ASSERT_TRUE(WaitForText(batch, "KV blocks"));
  batch.Send("\x1a");
  ASSERT_TRUE(batch.WaitForStop());
  // The emulator may not have received the last bytes yet.
  EXPECT_TRUE(batch.WaitForScreen([](const TerminalEmulator& t) { return !t.state().alternate_screen; }));
  kill(-batch.pid(), SIGCONT);
  ASSERT_TRUE(batch.WaitForScreen(
      [](const TerminalEmulator& t) { return t.state().alternate_screen && Shows(t, "KV blocks"); }));
  batch.Send("\x03");
  EXPECT_EQ(batch.WaitForExit(), 128 + SIGINT);
  EXPECT_TRUE(batch.TerminalIsRestored());
}

TEST_F(TopProgramTest, NoColorDrawsWithoutColors) {
  environment_["NO_COLOR"] = "1";
  PtyProgram batch(BatchArguments(WriteRows({kEndless}), {"--live"}), environment_);
  ASSERT_TRUE(WaitForText(batch, "writing"));
  for (int row = 0; row < 24; ++row) {
    for (int column = 0; column < 80; ++column) {
      EXPECT_EQ(batch.terminal().Cell(row, column).color, -1);
      EXPECT_EQ(batch.terminal().Cell(row, column).background, -1);
    }
  }
  batch.Send("qy");
  EXPECT_EQ(batch.WaitForExit(), 1);
}

TEST_F(TopProgramTest, EngineCommandReturnsToTheSameChat) {
  PtyProgram chat({"chat", "-m", model_, "-n", "5", "--ignore-eos", "--kv-cache-memory", "64M"}, environment_);
  ASSERT_TRUE(WaitForText(chat, ">>>"));
  chat.Send("hello\r");
  ASSERT_TRUE(chat.WaitForScreen([](const TerminalEmulator& t) { return t.Row(t.cursor().row) == ">>>"; }));
  const std::vector<std::string> before = chat.terminal().AllRows();
  chat.Send("/engine\r");
  ASSERT_TRUE(WaitForText(chat, "KV blocks"));
  EXPECT_TRUE(chat.terminal().state().alternate_screen);
  chat.Send("q");
  ASSERT_TRUE(chat.WaitForScreen([](const TerminalEmulator& t) {
    return !t.state().alternate_screen && t.Row(t.cursor().row) == ">>>" && t.Row(t.cursor().row - 1) == ">>> /engine";
  }));
  std::vector<std::string> after = chat.terminal().AllRows();
  ASSERT_GE(after.size(), before.size());
  EXPECT_TRUE(std::equal(before.begin(), before.end() - 1, after.begin()));
  chat.Send("again\r");
  ASSERT_TRUE(chat.WaitForScreen([&after](const TerminalEmulator& t) {
    return t.AllRows().size() > after.size() && t.Row(t.cursor().row) == ">>>";
  }));
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  EXPECT_TRUE(chat.TerminalIsRestored());
}

}  // namespace
}  // namespace vllm::app
