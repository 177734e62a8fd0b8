// Runs `vllmcli batch` under the mpirun of Open MPI and the mpiexec of MPICH. The rows must be those of one process,
// byte for byte, also if ranks are killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"
#include "tests/support/thinking_model.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const std::vector<std::string> kOpenMpi = {"/usr/bin/mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"};
const std::vector<std::string> kMpich = {"/usr/bin/mpiexec.mpich"};

class DistributedBatchProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(GuideModel(), "");
    ASSERT_TRUE(fs::exists(kOpenMpi.front()));
    ASSERT_TRUE(fs::exists(kMpich.front()));
  }

  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  // Returns the bytes up to the first error: reading a file of a process that has just ended fails.
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static std::string Sorted(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    std::string sorted;
    for (const std::string& line : lines) sorted += line + "\n";
    return sorted;
  }
  // Returns rows with sampling, several answers, logprobs, schemas, chats, long common prefixes and errors.
  static std::string Rows(int num_rows) {
    std::string rows;
    for (int i = 0; i < num_rows; ++i) {
      Json row = {{"max_tokens", 3 + i % 11}, {"temperature", i % 3 == 0 ? 0.0 : 0.9}, {"label", i}};
      row["prompt"] = (i % 4 == 0 ? std::string(80, 'x') : std::string()) + "Row " + std::to_string(i) + " of a batch";
      if (i % 2 == 0) row["custom_id"] = "row " + std::to_string(i);
      if (i % 3 == 1 && i % 4 == 0) row["n"] = 3;
      if (i % 5 == 0) row["logprobs"] = 1;
      if (i % 9 == 4) row["prompt_logprobs"] = 1;
      if (i % 17 == 3) row["top_p"] = 7;
      if (i % 7 == 2) row["stop"] = {"e"};
      if (i % 13 == 5) {
        row.erase("prompt");
        row["messages"] = {{{"role", "user"}, {"content", "Hello " + std::to_string(i)}}};
        row["max_tokens"] = 30;
        row["structured_outputs"] = {
            {"json", {{"type", "object"}, {"required", {"a"}}, {"properties", {{"a", {{"type", "integer"}}}}}}}};
      }
      rows += i % 23 == 9 ? "{broken\n" : row.dump() + "\n";
    }
    return rows;
  }
  static std::vector<std::string> Words(std::vector<std::string> launcher, const std::vector<std::string>& more) {
    launcher.insert(launcher.end(), more.begin(), more.end());
    return launcher;
  }
  // Runs a batch on `num_ranks` ranks.
  static ProgramResult Run(const std::vector<std::string>& launcher, int num_ranks,
                           const std::vector<std::string>& batch_words, const std::string& input = "") {
    std::vector<std::string> words =
        Words(launcher, {"-np", std::to_string(num_ranks), VLLMCLI_BINARY, "batch", "-m", GuideModel()});
    words.insert(words.end(), batch_words.begin(), batch_words.end());
    return Launch(words, input);
  }
  // Runs a launcher with these arguments.
  static ProgramResult Launch(std::vector<std::string> words, const std::string& input = "") {
    ProgramOptions options = Input(input);
    // Open MPI leaks memory, and takes its locks in different orders.
    options.environment = {{"ASAN_OPTIONS", "detect_leaks=0"},
                           {"TSAN_OPTIONS", "suppressions=" VLLMCLI_TEST_DATA "/open_mpi_tsan_suppressions.txt"}};
#if defined(__SANITIZE_THREAD__)
    options.environment["UCX_MEM_EVENTS"] = "no";  // UCX, the transport of MPICH, replaces mmap and then crashes
#endif
    options.program = words.front();
    words.erase(words.begin());
    return RunProgram(words, options);
  }
  static ProgramResult RunAlone(std::vector<std::string> words) {
    words.insert(words.begin(), {"batch", "-m", GuideModel()});
    return RunProgram(words);
  }

  // Returns the process of the job's rank, or -1. `output` is the path in its arguments.
  static pid_t RankProcess(int rank, const std::string& output) {
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) continue;
      const std::string arguments = Read(entry.path() / "cmdline");
      if (!arguments.starts_with(VLLMCLI_BINARY) || arguments.find(output) == std::string::npos) continue;
      const std::string environment = '\0' + Read(entry.path() / "environ");
      const std::string number = std::to_string(rank) + '\0';
      if (environment.find('\0' + ("OMPI_COMM_WORLD_RANK=" + number)) != std::string::npos ||
          environment.find('\0' + ("PMI_RANK=" + number)) != std::string::npos) {
        return static_cast<pid_t>(std::stol(name));
      }
    }
    return -1;
  }
  // Starts a job on two ranks, and sends a signal to a rank once the output has `num_bytes` bytes. Returns false if the
  // job ended before.
  bool RunAndKill(const std::vector<std::string>& launcher, int rank, size_t num_bytes, const std::string& input,
                  const std::string& output, ProgramResult& result, int signal_number = SIGKILL) {
    std::atomic<bool> ended = false;
    std::jthread job([&] {
      result = Run(launcher, 2, {input, "-o", output, "--resume", "--max-num-seqs", "4"});
      ended = true;
    });
    std::error_code error;
    pid_t pid = -1;
    while (pid < 0 && !ended) pid = RankProcess(rank, output);
    if (pid < 0) return false;
    while (kill(pid, 0) == 0) {
      const auto size = fs::file_size(output, error);
      if (!error && size >= num_bytes) break;
    }
    const bool killed = kill(pid, signal_number) == 0;
    job.join();
    return killed;
  }
  // Kills a rank at random moments, resumes until the job is done, and expects the rows of one process.
  void ExpectResumable(const std::vector<std::string>& launcher, int rank) {
    const std::string input = directory_.Write("in.jsonl", Rows(300));
    ASSERT_EQ(RunAlone({input, "-o", Path("whole.jsonl")}).status, 1);
    const std::string expected = Sorted(Read(Path("whole.jsonl")));
    std::mt19937 random(static_cast<uint32_t>(rank) + 1);
    const std::string output = Path("out.jsonl");
    // On a busy machine, some jobs are done before the signal.
    int num_killed = 0;
    ProgramResult result;
    for (int round = 0; num_killed < 3; ++round) {
      ASSERT_LT(round, 20) << result.err;
      fs::remove(output);
      fs::remove(output + ".job");
      if (!RunAndKill(launcher, rank, random() % (expected.size() * 3 / 4), input, output, result)) continue;
      ++num_killed;
      if (Sorted(Read(output)) != expected) {
        result = Run(launcher, 2, {input, "-o", output, "--resume"});
        EXPECT_EQ(result.status, 1) << result.err;
      }
      EXPECT_EQ(Sorted(Read(output)), expected) << result.err;
    }
  }

  TempDirectory directory_;
};

TEST_F(DistributedBatchProgramTest, RowsAreThoseOfOneProcess) {
  const std::string input = directory_.Write("in.jsonl", Rows(200));
  ASSERT_EQ(RunAlone({input, "-o", Path("one.jsonl")}).status, 1);
  const std::string expected = Sorted(Read(Path("one.jsonl")));
  for (const auto& launcher : {kOpenMpi, kMpich}) {
    for (const int num_ranks : {1, 2, 3}) {
      const ProgramResult result = Run(launcher, num_ranks, {input, "-o", Path("out.jsonl"), "--overwrite", "--stats"});
      EXPECT_EQ(result.status, 1) << result.err;
      EXPECT_EQ(Sorted(Read(Path("out.jsonl"))), expected) << result.err;
      // Every rank has done its part, and only rank 0 prints.
      EXPECT_EQ(result.err.find("sequences finished: rank 0 (") != std::string::npos, num_ranks > 1) << result.err;
      EXPECT_EQ(result.err.find("200 rows, 21 failed"), result.err.rfind("200 rows, 21 failed")) << result.err;
    }
  }
}

// The other ranks compile the schema again, and use their own model's thinking markers.
TEST_F(DistributedBatchProgramTest, ThoughtsAndSchemasAreThoseOfOneProcess) {
  const std::string model = testing_support::AddThinkTags(CopyGuideModel(Path("model"), {}));
  std::string rows;
  for (int i = 0; i < 60; ++i) {
    Json row = {{"messages", {{{"role", "user"}, {"content", "Question " + std::to_string(i)}}}}, {"max_tokens", 40}};
    row["thinking_token_budget"] = i % 20;
    if (i % 2 == 0) row["structured_outputs"] = {{"json", {{"enum", {"yes", "no", i}}}}};
    rows += row.dump() + "\n";
  }
  const std::string input = directory_.Write("in.jsonl", rows);
  const ProgramResult alone = RunProgram({"batch", "-m", model, input, "-o", Path("one.jsonl")});
  ASSERT_EQ(alone.status, 0) << alone.err;
  const ProgramResult result = Run(kOpenMpi, 3, {"-m", model, input, "-o", Path("out.jsonl")});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(Sorted(Read(Path("out.jsonl"))), Sorted(Read(Path("one.jsonl"))));
  EXPECT_NE(Read(Path("one.jsonl")).find("\"reasoning\":"), std::string::npos);
}

TEST_F(DistributedBatchProgramTest, OrderedOutputIsThatOfOneProcess) {
  const std::string input = directory_.Write("in.jsonl", Rows(100));
  ASSERT_EQ(RunAlone({input, "-o", Path("one.jsonl"), "--ordered"}).status, 1);
  ASSERT_EQ(Run(kOpenMpi, 2, {input, "-o", Path("out.jsonl"), "--ordered", "-dp", "2"}).status, 1);
  EXPECT_EQ(Read(Path("out.jsonl")), Read(Path("one.jsonl")));
}

TEST_F(DistributedBatchProgramTest, StandardInputAndOutputAreThoseOfRank0) {
  const ProgramResult result =
      Run(kOpenMpi, 2, {"-", "-n", "3", "--ordered"}, "{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2) << result.out;
}

TEST_F(DistributedBatchProgramTest, KilledRankLosesNothingAfterResume) { ExpectResumable(kOpenMpi, 1); }

TEST_F(DistributedBatchProgramTest, KilledRank0LosesNothingAfterResume) { ExpectResumable(kOpenMpi, 0); }

TEST_F(DistributedBatchProgramTest, KilledRankOfMpichLosesNothingAfterResume) { ExpectResumable(kMpich, 1); }

TEST_F(DistributedBatchProgramTest, SignalToRank0LetsTheJobBeResumed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kNumRows = 300;
#else
  constexpr int kNumRows = 3000;
#endif
  const std::string input = directory_.Write("in.jsonl", Rows(kNumRows));
  ProgramResult result;
  ASSERT_TRUE(RunAndKill(kMpich, 0, 20'000, input, Path("out.jsonl"), result, SIGTERM)) << result.err;
  EXPECT_NE(result.err.find("--resume continues the job"), std::string::npos) << result.err;
  // Other ranks leave signals to rank 0.
  ASSERT_EQ(RunAlone({input, "-o", Path("whole.jsonl")}).status, 1);
  // Once the output has grown, rank 1 has installed its signal handlers.
  const size_t written = fs::file_size(Path("out.jsonl"));
  ASSERT_TRUE(RunAndKill(kMpich, 1, written + 20'000, input, Path("out.jsonl"), result, SIGTERM));
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_EQ(Sorted(Read(Path("out.jsonl"))), Sorted(Read(Path("whole.jsonl"))));
}

TEST_F(DistributedBatchProgramTest, JobContinuesWithoutADeadRankIfTheLauncherAllowsIt) {
  const std::string input = directory_.Write("in.jsonl", Rows(300));
  ASSERT_EQ(RunAlone({input, "-o", Path("one.jsonl")}).status, 1);
  const std::string expected = Sorted(Read(Path("one.jsonl")));
  const std::string output = Path("out.jsonl");
  ProgramResult result;
  ASSERT_TRUE(RunAndKill(Words(kOpenMpi, {"--enable-recovery"}), 1, expected.size() / 4, input, output, result));
  EXPECT_EQ(Sorted(Read(output)), expected) << result.err;
  EXPECT_NE(result.err.find("warning: rank 1 ("), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("unfinished sequences continue elsewhere"), std::string::npos) << result.err;
}

TEST_F(DistributedBatchProgramTest, RankWithOtherSettingsIsRejected) {
  const std::string input = directory_.Write("in.txt", "a\n");
  // Two ranks with different command lines.
  std::vector<std::string> words = Words(kOpenMpi, {"-np", "1", VLLMCLI_BINARY, "batch", "-m", GuideModel(), input});
  const std::vector<std::string> other = {":",  "-np",        "1",   VLLMCLI_BINARY, "batch",
                                          "-m", GuideModel(), input, "--seed",       "7"};
  words.insert(words.end(), other.begin(), other.end());
  const ProgramResult result = Launch(words);
  EXPECT_EQ(result.status, 2) << result.err;
  EXPECT_NE(result.err.find("would give other answers: seed is not set on rank 0 and 7 there"), std::string::npos)
      << result.err;
}

TEST_F(DistributedBatchProgramTest, ErrorIsPrintedOnce) {
  const ProgramResult result = Run(kOpenMpi, 3, {Path("missing.jsonl")});
  EXPECT_EQ(result.status, 3) << result.err;
  EXPECT_EQ(result.err.find("missing.jsonl"), result.err.rfind("missing.jsonl")) << result.err;
}

TEST_F(DistributedBatchProgramTest, CheckAndStatusRunOnRank0Only) {
  const std::string input = directory_.Write("in.txt", "a\nb\n");
  ProgramResult result = Run(kOpenMpi, 2, {input, "--check"});
  EXPECT_EQ(result.status, 0) << result.err;
  const std::string printed = result.out + result.err;
  EXPECT_EQ(printed.find("2 rows"), printed.rfind("2 rows")) << printed;
  ASSERT_EQ(RunAlone({input, "-o", Path("out.jsonl"), "-n", "2"}).status, 0);
  std::vector<std::string> words = Words(kOpenMpi, {"-np", "2", VLLMCLI_BINARY, "batch", "status", Path("out.jsonl")});
  ProgramOptions options;
  options.program = words.front();
  words.erase(words.begin());
  result = RunProgram(words, options);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out.find("2 of 2 rows done"), result.out.rfind("2 of 2 rows done")) << result.out;
}

}  // namespace
}  // namespace vllm::app
