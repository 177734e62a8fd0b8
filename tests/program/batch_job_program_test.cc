// Runs `vllmcli batch` as a job: kills and interrupts it, resumes it and retries it. The rows must be those of an
// uninterrupted job, byte for byte.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "tests/program/background_program.h"
#include "tests/program/program.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class BatchJobProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(GuideModel(), "");
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_batch_job_" + std::to_string(getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
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
  static ProgramResult Batch(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.begin(), {"batch", "-m", GuideModel()});
    return RunProgram(words, Input(input));
  }
  // Returns rows with sampling, several answers, ids of both kinds and errors.
  static std::string Rows(int num_rows) {
    std::string rows;
    for (int i = 0; i < num_rows; ++i) {
      Json row = {{"prompt", "Row " + std::to_string(i) + " of a batch"},
                  {"max_tokens", 3 + i % 11},
                  {"temperature", i % 3 == 0 ? 0.0 : 0.9},
                  {"ignore_eos", true},
                  {"label", i}};
      if (i % 2 == 0) row["custom_id"] = "row " + std::to_string(i % 30 == 28 ? 0 : i);
      if (i % 3 == 1 && i % 4 == 0) row["n"] = 3;
      if (i % 5 == 0) row["logprobs"] = 1;
      if (i % 17 == 3) row["top_p"] = 7;
      rows += i % 23 == 9 ? "{broken\n" : row.dump() + "\n";
    }
    return rows;
  }
  // Starts a batch, kills it with `signal_number` after `delay`, and returns its exit status.
  static int Kill(std::vector<std::string> words, int signal_number, std::chrono::microseconds delay) {
    words.insert(words.begin(), {VLLMCLI_BINARY, "batch", "-m", GuideModel(), "--quiet"});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid = -1;
    EXPECT_EQ(posix_spawn(&pid, VLLMCLI_BINARY, &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    std::this_thread::sleep_for(delay);
    kill(pid, signal_number);
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Interrupts a job at random moments, resumes it until it is done, and expects the rows of an uninterrupted job.
  void ExpectSurvives(int signal_number, int num_kills, const std::vector<std::string>& flags) {
    const std::string input = Write("in.jsonl", Rows(400));
    std::vector<std::string> words = {input, "-o", Path("whole.jsonl")};
    words.insert(words.end(), flags.begin(), flags.end());
    words.emplace_back("--overwrite");
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(Batch(words).status, 1);
    const auto whole_time =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
    const std::string expected = Sorted(Read(Path("whole.jsonl")));
    std::mt19937 random(7);
    int kills = 0;
    while (kills < num_kills) {
      fs::remove(Path("out.jsonl"));
      fs::remove(Path("out.jsonl.job"));
      words = {input, "-o", Path("out.jsonl"), "--resume"};
      words.insert(words.end(), flags.begin(), flags.end());
      // Each start has time for a part of the job only.
      for (int i = 0; i < 4; ++i, ++kills) {
        Kill(words, signal_number, std::chrono::microseconds(random() % static_cast<uint64_t>(whole_time.count())));
      }
      const ProgramResult result = Batch(words);
      ASSERT_EQ(result.status, 1) << result.err;
      ASSERT_EQ(Sorted(Read(Path("out.jsonl"))), expected) << "after " << kills << " kills";
    }
  }
  // Returns the number in the environment variable, or the number of kills that each run of the tests affords.
  static int NumKills(int count) {
    const char* text = std::getenv("VLLMCLI_KILLS");
    return text == nullptr ? count : std::atoi(text);
  }

  fs::path directory_;
};

TEST_F(BatchJobProgramTest, AKilledJobLosesAndDoublesNoRow) { ExpectSurvives(SIGKILL, NumKills(20), {}); }

TEST_F(BatchJobProgramTest, AnInterruptedJobLosesAndDoublesNoRow) {
  ExpectSurvives(SIGINT, 4, {"--max-num-seqs", "4"});
  ExpectSurvives(SIGTERM, 4, {"--max-num-seqs", "4"});
  ExpectSurvives(SIGHUP, 4, {"--max-num-seqs", "4"});
}

TEST_F(BatchJobProgramTest, AKilledJobWithAnErrorsFileLosesNoRow) {
  const std::string input = Write("in.jsonl", Rows(300));
  ASSERT_EQ(Batch({input, "-o", Path("whole.jsonl"), "--errors", Path("whole.errors")}).status, 1);
  const std::vector<std::string> words = {input, "-o", Path("out.jsonl"), "--errors", Path("out.errors"), "--resume"};
  for (int i = 0; i < 4; ++i) Kill(words, SIGKILL, std::chrono::milliseconds(90 + 40 * i));
  ASSERT_EQ(Batch(words).status, 1);
  EXPECT_EQ(Sorted(Read(Path("out.jsonl"))), Sorted(Read(Path("whole.jsonl"))));
  EXPECT_EQ(Sorted(Read(Path("out.errors"))), Sorted(Read(Path("whole.errors"))));
  ASSERT_EQ(RunProgram({"batch", "retry", Path("out.jsonl")}).status, 1);
  EXPECT_EQ(Sorted(Read(Path("out.errors"))), Sorted(Read(Path("whole.errors"))));
}

TEST_F(BatchJobProgramTest, AKilledOrderedJobIsInOrderInTheEnd) {
  const std::string input = Write("in.jsonl", Rows(300));
  ASSERT_EQ(Batch({input, "-o", Path("whole.jsonl"), "--ordered"}).status, 1);
  for (int i = 0; i < 4; ++i) {
    Kill({input, "-o", Path("out.jsonl"), "--resume", "--ordered"}, i % 2 == 0 ? SIGKILL : SIGINT,
         std::chrono::milliseconds(120 + 30 * i));
  }
  ASSERT_EQ(Batch({input, "-o", Path("out.jsonl"), "--resume", "--ordered"}).status, 1);
  EXPECT_EQ(Read(Path("out.jsonl")), Read(Path("whole.jsonl")));
}

TEST_F(BatchJobProgramTest, ATornJobIsResumedAtEveryLength) {
  const std::string input = Write("in.jsonl", Rows(12));
  const std::string output = Path("out.jsonl");
  ASSERT_EQ(Batch({input, "-o", output}).status, 1);
  const std::string text = Read(output);
  const std::string job = Read(output + ".job");
  const std::string expected = Sorted(text);
  for (size_t length = 0; length <= text.size(); length += 97) {
    Write("out.jsonl", text.substr(0, length));
    Write("out.jsonl.job", job);
    ASSERT_EQ(Batch({input, "-o", output, "--resume"}).status, 1) << length;
    ASSERT_EQ(Sorted(Read(output)), expected) << length;
  }
  const size_t header_bytes = job.find('\n') + 1;
  for (size_t length = header_bytes; length <= job.size(); length += 29) {
    Write("out.jsonl", text);
    Write("out.jsonl.job", job.substr(0, length));
    ASSERT_EQ(Batch({input, "-o", output, "--resume"}).status, 1) << length;
    ASSERT_EQ(Sorted(Read(output)), expected) << length;
  }
}

TEST_F(BatchJobProgramTest, AnotherStartWithoutAFlagSaysWhatToDoAndChangesNothing) {
  const std::string input = Write("in.txt", "Once\nOne day\n");
  const std::string output = Path("out.jsonl");
  ASSERT_EQ(Batch({input, "-o", output, "-n", "3", "--limit", "1"}).status, 0);
  const std::string text = Read(output);
  const std::string job = Read(output + ".job");
  ProgramResult again = Batch({input, "-o", output, "-n", "3"});
  EXPECT_EQ(again.status, 2);
  EXPECT_NE(again.err.find("this job is finished (1 rows, 0 failed)"), std::string::npos) << again.err;
  // Without its last entry, the job is unfinished.
  Write("out.jsonl.job", job.substr(0, job.size() - 64));
  again = Batch({input, "-o", output, "-n", "3"});
  EXPECT_EQ(again.status, 2);
  EXPECT_NE(again.err.find("--resume continues it"), std::string::npos) << again.err;
  EXPECT_EQ(Read(output), text);
  again = Batch({input, "-o", output, "-n", "4"});
  EXPECT_EQ(again.status, 2);
  EXPECT_NE(again.err.find("another job: max-tokens was 3 and is now 4"), std::string::npos) << again.err;
  EXPECT_EQ(Read(output), text);
}

TEST_F(BatchJobProgramTest, AJobWithoutRowsIsStartedAgain) {
  const std::string input = Write("in.csv", "a,b\nOnce,1\n");
  EXPECT_EQ(Batch({input, "-o", Path("out.csv"), "--format", "csv"}).status, 2);
  EXPECT_EQ(Batch({input, "-o", Path("out.csv"), "--format", "csv", "--template", "{a}", "-n", "2"}).status, 0);
}

TEST_F(BatchJobProgramTest, RowsThatTheJobFileHasLostAreNotReplacedWithoutAFlag) {
  const std::string input = Write("in.txt", "Once\n");
  const std::string output = Path("out.jsonl");
  ASSERT_EQ(Batch({input, "-o", output, "-n", "2"}).status, 0);
  const std::string text = Read(output);
  const std::string job = Read(output + ".job");
  Write("out.jsonl.job", job.substr(0, job.find('\n') + 1));
  EXPECT_EQ(Batch({input, "-o", output, "-n", "2"}).status, 2);
  EXPECT_EQ(Read(output), text);
}

TEST_F(BatchJobProgramTest, ResumeNamesTheSettingOrModelThatChangedAndAllowsOthers) {
  const std::string input = Write("in.txt", "Once\nOne day\n");
  const std::string output = Path("out.jsonl");
  ASSERT_EQ(Batch({input, "-o", output, "-n", "3", "-t", "0.50"}).status, 0);
  const auto resume = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {input, "-o", output, "--resume"});
    return Batch(flags);
  };
  EXPECT_EQ(
      resume({"-n", "3", "-t", "0.5", "--max-num-seqs", "2", "--threads-per-rank", "1", "--block-size", "32"}).status,
      0);
  EXPECT_NE(resume({"-n", "3", "-t", "0.5", "--seed", "7"}).err.find("seed was not set and is now 7"),
            std::string::npos);
  EXPECT_NE(resume({"-n", "3"}).err.find("temperature was 0.5 and is now not set"), std::string::npos);
  const std::string copy = CopyGuideModel(directory_ / "model", {});
  const ProgramResult other =
      RunProgram({"batch", "-m", copy, input, "-o", output, "--resume", "-n", "3", "-t", "0.5"});
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("the model was"), std::string::npos) << other.err;
}

TEST_F(BatchJobProgramTest, AJobKeepsTheContextOfItsFirstStart) {
  // The second prompt is too long for 6 blocks of 16 tokens, and the answers end only with the context.
  std::string long_prompt;
  for (int i = 0; i < 150; ++i) long_prompt += "word ";
  const std::string input = Write("in.txt", "Once\n" + long_prompt + "\nOne day\n");
  const std::vector<std::string> words = {
      input, "-o", Path("out.jsonl"), "--no-apply-chat-template", "-t", "0.9", "--ignore-eos", "--block-size", "16"};
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return Batch(all);
  };
  ASSERT_EQ(run({"--num-kv-blocks", "6"}).status, 1);
  const std::string expected = Read(Path("out.jsonl"));
  EXPECT_NE(expected.find("limit 95"), std::string::npos) << expected;

  ASSERT_EQ(run({"--num-kv-blocks", "6", "--limit", "1", "--overwrite"}).status, 0);
  const ProgramResult smaller = run({"--num-kv-blocks", "4", "--resume"});
  EXPECT_EQ(smaller.status, 4);
  EXPECT_NE(smaller.err.find("a request may need 96 tokens of context, and the KV cache holds 64"), std::string::npos)
      << smaller.err;
  EXPECT_EQ(run({"--resume"}).status, 1);
  EXPECT_EQ(Sorted(Read(Path("out.jsonl"))), Sorted(expected));
}

TEST_F(BatchJobProgramTest, RowsThatFitRunWithASmallerContextToo) {
  const std::string input = Write("in.txt", "Once\nOne day\nThe cat\n");
  const std::vector<std::string> words = {input, "-o", Path("out.jsonl"), "--no-apply-chat-template", "-n", "9"};
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return Batch(all);
  };
  ASSERT_EQ(run({}).status, 0);
  const std::string expected = Read(Path("out.jsonl"));
  ASSERT_EQ(run({"--limit", "1", "--overwrite"}).status, 0);
  EXPECT_EQ(run({"--resume", "--block-size", "16", "--num-kv-blocks", "4"}).status, 0);
  EXPECT_EQ(Sorted(Read(Path("out.jsonl"))), Sorted(expected));
}

TEST_F(BatchJobProgramTest, ResumeRejectsAChangedInputAndResumeAnywayOnlyChangedRows) {
  const std::string output = Path("out.jsonl");
  const std::string input = Write("in.jsonl", "{\"id\":1,\"prompt\":\"Once\"}\n{\"id\":2,\"prompt\":\"One day\"}\n");
  const std::vector<std::string> words = {input, "-o", output, "-n", "3"};
  const auto run = [&](const std::string& flag) {
    std::vector<std::string> all = words;
    all.push_back(flag);
    return Batch(all);
  };
  ASSERT_EQ(Batch(words).status, 0);
  Write("in.jsonl", "{\"id\":3,\"prompt\":\"A\"}\n{\"id\":1,\"prompt\":\"Once\"}\n{\"id\":2,\"prompt\":\"One day\"}\n");
  const ProgramResult added = run("--resume");
  EXPECT_EQ(added.status, 2);
  EXPECT_NE(added.err.find("has changed since the job began"), std::string::npos) << added.err;
  EXPECT_NE(added.err.find("--resume-anyway"), std::string::npos) << added.err;
  EXPECT_EQ(run("--resume-anyway").status, 0);
  std::vector<int> ids;
  std::istringstream lines(Read(output));
  for (std::string line; std::getline(lines, line);) ids.push_back(Json::parse(line)["id"].get<int>());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<int>{1, 2, 3}));
  Write("in.jsonl", "{\"id\":1,\"prompt\":\"Twice\"}\n{\"id\":2,\"prompt\":\"One day\"}\n");
  const ProgramResult changed = run("--resume-anyway");
  EXPECT_EQ(changed.status, 2);
  EXPECT_NE(changed.err.find("row 1 (line 1) has changed"), std::string::npos) << changed.err;
}

TEST_F(BatchJobProgramTest, FailedRowsRunAgainOnlyOnRequestAndAreReplaced) {
  const std::string input = Write("in.txt", "Once\n" + std::string(20000, 'z') + "\nOne day\n");
  const std::string output = Path("out.jsonl");
  ASSERT_EQ(Batch({input, "-o", output, "-n", "3"}).status, 1);
  const std::string text = Read(output);
  EXPECT_EQ(Batch({input, "-o", output, "-n", "3", "--resume"}).status, 1);
  EXPECT_EQ(Read(output), text);
  const ProgramResult retry = RunProgram({"batch", "retry", output});
  EXPECT_EQ(retry.status, 1);
  EXPECT_NE(retry.err.find("3 rows (2 done before), 1 failed"), std::string::npos) << retry.err;
  EXPECT_EQ(Sorted(Read(output)), Sorted(text));
  const ProgramResult status = RunProgram({"batch", "status", output, "--json"});
  EXPECT_EQ(status.status, 0);
  const Json json = Json::parse(status.out);
  EXPECT_EQ(json["state"], "finished");
  EXPECT_EQ(json["rows"], 3);
  EXPECT_EQ(json["total_rows"], 3);
  EXPECT_EQ(json["errors"]["invalid_request"], 1);
}

TEST_F(BatchJobProgramTest, AFailedRowCanBeCorrectedInTheInput) {
  const std::string output = Path("out.jsonl");
  const std::string input = Write("in.jsonl", "{\"prompt\":\"Once\"}\n{\"prompt\":\"One\",\"top_p\":7}\n");
  ASSERT_EQ(Batch({input, "-o", output, "-n", "3"}).status, 1);
  Write("in.jsonl", "{\"prompt\":\"Once\"}\n{\"prompt\":\"One\",\"top_p\":0.7}\n");
  EXPECT_EQ(Batch({input, "-o", output, "-n", "3", "--retry-errors"}).status, 2);
  const ProgramResult retry = Batch({input, "-o", output, "-n", "3", "--retry-errors", "--resume-anyway"});
  EXPECT_EQ(retry.status, 0) << retry.err;
  const std::string text = Read(output);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST_F(BatchJobProgramTest, TheErrorsFileIsAnInputThatFailsTheSameWay) {
  const std::string rows =
      R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"hi"}],"max_tokens":2}})"
      "\n"
      R"({"custom_id":"b","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"hi"}],"top_p":9}})"
      "\n";
  const std::string input = Write("in.jsonl", rows);
  ASSERT_EQ(Batch({input, "-o", Path("out.jsonl"), "--errors", Path("errors.jsonl")}).status, 1);
  EXPECT_EQ(Json::parse(Read(Path("out.jsonl")))["custom_id"], "a");
  const Json error = Json::parse(Read(Path("errors.jsonl")));
  EXPECT_EQ(error["custom_id"], "b");
  EXPECT_EQ(error["error"]["code"], "invalid_request");
  EXPECT_TRUE(error["response"].is_null());
  EXPECT_EQ(error["body"]["top_p"], 9);
  ASSERT_EQ(Batch({Path("errors.jsonl"), "-o", Path("out2.jsonl"), "--errors", Path("errors2.jsonl")}).status, 1);
  EXPECT_EQ(Read(Path("out2.jsonl")), "");
  Json again = Json::parse(Read(Path("errors2.jsonl")));
  again["error"]["line"] = error["error"]["line"];
  EXPECT_EQ(again, error);
}

TEST_F(BatchJobProgramTest, ATableIsRepeatedInCsvOutput) {
  const std::string input =
      Write("in.csv", "\xEF\xBB\xBFid,q,note\n1,\"a \"\"b\"\"\",\"x\ny\"\n2,c\n3,d,\xE2\x80\x8D\n");
  const ProgramResult result = Batch({input, "-o", Path("out.csv"), "--format", "csv", "--template", "{q}", "-n", "1",
                                      "--ordered", "--no-apply-chat-template", "-t", "0"});
  EXPECT_EQ(result.status, 1) << result.err;
  const std::string text = Read(Path("out.csv"));
  EXPECT_EQ(text.find("id,q,note,output,finish_reason,error\n1,\"a \"\"b\"\"\",\"x\ny\","), 0u) << text;
  EXPECT_NE(text.find("\n,,,,,\"row: has 2 fields, but the header has 3\"\n3,d,\xE2\x80\x8D,"), std::string::npos)
      << text;
}

TEST_F(BatchJobProgramTest, TextFilesAreRowsWithTheirPathAsId) {
  fs::create_directories(directory_ / "notes" / "sub");
  Write("notes/a.txt", "Once");
  Write("notes/sub/b.txt", "One\nday");
  Write("notes/.hidden", "no");
  const auto ids = [&](const std::string& argument) {
    const ProgramResult result = Batch({argument, "--prompt", "Summarize:", "-n", "1", "--ordered"});
    EXPECT_EQ(result.status, 0) << result.err;
    std::string text;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) text += Json::parse(line)["id"].get<std::string>() + " ";
    return text;
  };
  Write("notes/a.txt.job", "x");
  EXPECT_EQ(Batch({Path("notes"), "--prompt", "Summarize:", "-n", "1", "-o", Path("notes/out.jsonl")}).status, 0);
  const ProgramResult again =
      Batch({Path("notes"), "--prompt", "Summarize:", "-n", "1", "-o", Path("notes/out.jsonl"), "--resume"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.err.find("3 rows (3 done before)"), std::string::npos) << again.err;
  Write("notes/new.txt", "More");
  EXPECT_EQ(
      Batch({Path("notes"), "--prompt", "Summarize:", "-n", "1", "-o", Path("notes/out.jsonl"), "--resume"}).status, 2);
  fs::remove(Path("notes/new.txt"));
  fs::remove(Path("notes/out.jsonl"));
  fs::remove(Path("notes/out.jsonl.job"));
  fs::remove(Path("notes/a.txt.job"));
  EXPECT_EQ(ids(Path("notes")), Path("notes/a.txt") + " " + Path("notes/sub/b.txt") + " ");
  EXPECT_EQ(ids(Path("notes/*.txt")), Path("notes/a.txt") + " ");
  EXPECT_EQ(ids(Path("notes/a.txt")), Path("notes/a.txt") + " ");
}

TEST_F(BatchJobProgramTest, ShardsTogetherAreAllRowsAndASampleIsTheSameEachTime) {
  std::string rows;
  for (int i = 0; i < 50; ++i) rows += "row " + std::to_string(i) + "\n";
  const std::string input = Write("in.txt", rows);
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {input, "-n", "2"});
    return Batch(flags).out;
  };
  const std::string all = Sorted(run({}));
  EXPECT_EQ(Sorted(run({"--shard", "0/3"}) + run({"--shard", "1/3"}) + run({"--shard", "2/3"})), all);
  const std::string sample = Sorted(run({"--sample", "10", "--seed", "5"}));
  EXPECT_EQ(std::count(sample.begin(), sample.end(), '\n'), 10);
  EXPECT_EQ(Sorted(run({"--sample", "10", "--seed", "5"})), sample);
  EXPECT_EQ(Sorted(run({"--sample", "10", "--seed", "5", "--shard", "0/2"}) +
                   run({"--sample", "10", "--seed", "5", "--shard", "1/2"})),
            sample);
  EXPECT_NE(Sorted(run({"--sample", "10", "--seed", "6"})), sample);
  const std::string first = run({"--limit", "3"});
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 3);
  EXPECT_EQ(Batch({input, "--shard", "3/3"}).status, 2);
}

// Runs `script` in a new mount namespace, where a user may mount a tmpfs.
int RunInNamespace(const std::string& script) {
  return std::system(("unshare -rm sh -c '" + script + "' 2>/dev/null").c_str());
}

TEST_F(BatchJobProgramTest, AnInterruptedJobWhoseRowsWereAllRunningIsUnfinished) {
  const std::string model = CopyGuideModel(directory_ / "model", {.context = 100'000});
  const std::string input = Write("in.txt", "Once\nOne day\n");
  BackgroundProgram batch(
      {"batch", "-m", model, input, "-o", Path("out.jsonl"), "-n", "90000", "--ignore-eos", "--progress", "json"}, {});
  ASSERT_TRUE(batch.WaitForError("\"total_rows\":2"));
  batch.Signal(SIGINT);
  EXPECT_EQ(batch.Wait().status, 130);
  const Json status = Json::parse(RunProgram({"batch", "status", Path("out.jsonl"), "--json"}).out);
  EXPECT_EQ(status["state"], "interrupted");
  EXPECT_EQ(status["rows"], 0);
}

TEST_F(BatchJobProgramTest, TheSummaryOfAnInterruptedJobReplacesTheProgressLine) {
  const std::string model = CopyGuideModel(directory_ / "model", {.context = 100'000});
  PtyProgram batch({"batch", Write("in.txt", "Once\n"), "-m", model, "-o", Path("out.jsonl"), "-n", "90000",
                    "--ignore-eos", "--kv-cache-memory", "64M"});
  const auto row_begins = [](const TerminalEmulator& terminal, const std::string& text) {
    const std::vector<std::string> rows = terminal.AllRows();
    return std::any_of(rows.begin(), rows.end(), [&](const std::string& row) { return row.starts_with(text); });
  };
  ASSERT_TRUE(batch.WaitForScreen([&](const TerminalEmulator& t) { return row_begins(t, "0/1 rows"); }));
  batch.Send("\x03");
  // The progress line appears again after the message.
  ASSERT_TRUE(batch.WaitForScreen(
      [&](const TerminalEmulator& t) { return row_begins(t, "[stopping") && row_begins(t, "0/1 rows"); }));
  batch.Send("\x03");
  EXPECT_EQ(batch.WaitForExit(), 130);
  EXPECT_FALSE(row_begins(batch.terminal(), "0/1 rows"));
  EXPECT_TRUE(row_begins(batch.terminal(), "0 rows, 0 failed"));
}

TEST_F(BatchJobProgramTest, AFullDiskEndsTheJobWithStatusFourAndItCanBeResumed) {
  const std::string disk = Path("disk");
  fs::create_directories(disk);
  if (RunInNamespace("mount -t tmpfs -o size=64k none " + disk) != 0)
    GTEST_SKIP() << "needs root: cannot mount a tmpfs";
  const std::string input = Write("in.jsonl", Rows(400));
  ASSERT_EQ(Batch({input, "-o", Path("whole.jsonl")}).status, 1);
  const std::string batch =
      std::string(VLLMCLI_BINARY) + " batch " + input + " -o " + disk + "/out.jsonl -m " + GuideModel();
  // 64 KiB are too little for the output, 4 MiB are enough.
  RunInNamespace("mount -t tmpfs -o size=64k none " + disk + " && cd " + disk + "; " + batch + " 2>" + Path("err") +
                 "; echo $? >" + Path("status") + "; tail -c 1 out.jsonl | od -An -c >" + Path("last") +
                 "; mount -o remount,size=4m " + disk + "; " + batch + " --resume; echo $? >>" + Path("status") +
                 "; cp out.jsonl " + Path("out.jsonl"));
  EXPECT_EQ(Read(Path("status")), "4\n1\n");
  EXPECT_NE(Read(Path("err")).find("No space left on device; the finished rows are kept, and --resume"),
            std::string::npos)
      << Read(Path("err"));
  EXPECT_NE(Read(Path("last")).find("\\n"), std::string::npos);
  EXPECT_EQ(Sorted(Read(Path("out.jsonl"))), Sorted(Read(Path("whole.jsonl"))));
}

TEST_F(BatchJobProgramTest, AVanishedDirectoryEndsTheJobWithStatusFour) {
  fs::create_directories(directory_ / "output");
  const std::string fifo = Path("rows");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::string output = Path("output/out.jsonl");
  ProgramResult result;
  std::thread program([&] { result = Batch({fifo, "--input-format", "txt", "-o", output, "-n", "2"}); });
  {
    std::ofstream rows(fifo);
    rows << "Once" << std::endl;
    while (Read(output).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    // The program checks once per second while it waits for more rows.
    fs::remove_all(directory_ / "output");
    program.join();
  }
  EXPECT_EQ(result.status, 4);
  EXPECT_NE(result.err.find("batch output " + output + ": the file is no longer there"), std::string::npos)
      << result.err;
}

TEST_F(BatchJobProgramTest, AClosedPipeEndsTheBatchQuietly) {
  const std::string input = Write("in.jsonl", Rows(400));
  ProgramOptions options;
  options.close_out_after = 100;
  const ProgramResult result = RunProgram({"batch", "-m", GuideModel(), input}, options);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
}

TEST_F(BatchJobProgramTest, ASecondJobOnOneOutputIsRejected) {
  const std::string input = Write("in.txt", "Once\n");
  const std::string output = Write("out.jsonl", "");
  const int fd = open(output.c_str(), O_RDWR);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  const ProgramResult result = Batch({input, "-o", output, "--overwrite"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("another process is writing to it"), std::string::npos) << result.err;
  close(fd);
}

}  // namespace
}  // namespace vllm::app
