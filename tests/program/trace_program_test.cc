// Records runs of the program with --trace, and shows and replays them with `vllmcli trace`.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/trace/trace_reader.h"
#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json ReplayJson(const std::string& path) {
  const ProgramResult result = RunProgram({"trace", "replay", "--json", path});
  EXPECT_EQ(result.status, 0) << result.err;
  return Json::parse(result.out);
}

// Rows that share a prefix, with several sequences, priorities and prompt logprobs.
std::string BusyRows() {
  std::string rows;
  for (int i = 0; i < 12; ++i) {
    Json row = {{"prompt", "How do I run a batch of prompts with this program on the machine, please? " +
                               std::string(static_cast<size_t>(i), 'x')},
                {"max_tokens", 20 + i},
                {"temperature", 0.8},
                {"seed", i}};
    if (i % 3 == 0) row["n"] = 3;
    if (i % 4 == 1) row["prompt_logprobs"] = 1;
    if (i % 5 == 2) row["stop"] = {"e"};
    rows += row.dump() + "\n";
  }
  return rows;
}

const std::vector<std::string>& TinyCache() {
  static const std::vector<std::string> flags = {"--num-kv-blocks",          "9",  "--max-num-seqs", "6",
                                                 "--max-num-batched-tokens", "24", "--ordered",      "--quiet"};
  return flags;
}

ProgramResult RunBatch(std::vector<std::string> flags) {
  std::vector<std::string> words = {"batch", "-", "-m", GuideModel()};
  words.insert(words.end(), TinyCache().begin(), TinyCache().end());
  words.insert(words.end(), flags.begin(), flags.end());
  return RunProgram(words, Input(BusyRows()));
}

TEST(TraceProgramTest, BatchWithATraceWritesTheSameOutputAndReplays) {
  const TempDirectory directory;
  for (const std::string policy : {"fcfs", "priority"}) {
    const std::string path = directory.path() + "/" + policy;
    const ProgramResult plain = RunBatch({"--scheduling-policy", policy});
    const ProgramResult traced = RunBatch({"--scheduling-policy", policy, "--trace", path});
    EXPECT_EQ(plain.status, 0) << plain.err;
    EXPECT_EQ(traced.status, 0) << traced.err;
    // Hits in the prefix cache depend on when rows arrive, which may differ between two runs.
    const auto texts = [](const std::string& out) {
      std::istringstream lines(out);
      std::string result;
      for (std::string line; std::getline(lines, line);) result += Json::parse(line)["outputs"].dump() + "\n";
      return result;
    };
    EXPECT_EQ(texts(traced.out), texts(plain.out));
    const Json replay = ReplayJson(path);
    EXPECT_EQ(replay["equal"], true);
    EXPECT_EQ(replay["requests"], 12 + 4 * 2);
    EXPECT_GT(replay["preemptions"], 0);
    EXPECT_GT(replay["cached_tokens"], 0);
  }
}

TEST(TraceProgramTest, ShowPrintsALinePerStep) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/trace";
  ASSERT_EQ(RunBatch({"--trace", path}).status, 0);
  const int64_t num_steps = ReplayJson(path)["steps"];
  const ProgramResult text = RunProgram({"trace", "show", path});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.err, "");
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), num_steps + 1);
  for (const char* part : {"/24 tokens (", " decode), ", "/9 blocks; ", " new", " resumed", " cached)", "; preempted ",
                           " (length)", "; added "}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part;
  }
  const ProgramResult json = RunProgram({"trace", "show", "--json", "-"}, Input(ReadText(path)));
  EXPECT_EQ(json.status, 0) << json.err;
  std::istringstream lines(json.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(Json::parse(line)["num_blocks"], 9);
  int64_t num_lines = 0, num_finished = 0;
  while (std::getline(lines, line)) {
    const Json step = Json::parse(line);
    EXPECT_EQ(step["step"], ++num_lines);
    int64_t num_tokens = 0;
    for (const Json& request : step["requests"]) num_tokens += request["tokens"].get<int64_t>();
    EXPECT_EQ(num_tokens, step["prefill_tokens"].get<int64_t>() + step["decode_tokens"].get<int64_t>());
    EXPECT_LE(num_tokens, 24);
    num_finished += static_cast<int64_t>(step["finished"].size());
  }
  EXPECT_EQ(num_lines, num_steps);
  EXPECT_EQ(num_finished, 12 + 4 * 2);
}

TEST(TraceProgramTest, ChangedDecisionIsReportedWithItsStep) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/trace";
  ASSERT_EQ(RunBatch({"--trace", path}).status, 0);
  const std::string bytes = ReadText(path);
  // Change the tokens of the first request in step 7.
  TraceReader reader(TraceBytes(bytes));
  TraceRecord record;
  std::string payload;
  std::string changed = std::string(kTraceMagic) + std::to_string(kTraceVersion) + "\n";
  record.type = TraceRecordType::kBegin;
  record.begin = reader.begin();
  AppendTraceRecord(record, payload, changed);
  int64_t step = 0;
  while (reader.Next(record)) {
    if (record.type == TraceRecordType::kStep && ++step == 7) ++record.step.scheduled[0].num_tokens;
    AppendTraceRecord(record, payload, changed);
  }
  const ProgramResult result = RunProgram({"trace", "replay", directory.Write("changed", changed)});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("the replay differs at step 7: scheduled request number 1: recorded request "),
            std::string::npos)
      << result.err;
}

TEST(TraceProgramTest, UnusableFilesAreErrors) {
  const TempDirectory directory;
  for (const std::string action : {"show", "replay"}) {
    ProgramResult result = RunProgram({"trace", action, directory.Write("text", "hello\n")});
    EXPECT_EQ(result.status, 3);
    EXPECT_NE(result.err.find("/text: is not a trace of vllmcli"), std::string::npos) << result.err;
    EXPECT_EQ(RunProgram({"trace", action, directory.path() + "/missing"}).status, 3);
    EXPECT_EQ(RunProgram({"trace", action, directory.path()}).status, 3);
    EXPECT_EQ(RunProgram({"trace", action}).status, 2);
  }
  EXPECT_EQ(RunProgram({"trace", "play", "x"}).status, 2);
}

TEST(TraceProgramTest, ExistingFileIsNotOverwritten) {
  const TempDirectory directory;
  const std::string path = directory.Write("notes", "precious");
  const ProgramResult result = RunProgram({"run", "-m", GuideModel(), "-n", "1", "--trace", path, "Hello"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("exists and is not empty"), std::string::npos) << result.err;
  EXPECT_EQ(ReadText(path), "precious");
}

TEST(TraceProgramTest, ChatIsReplayedWithItsPrefixHits) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/trace";
  const ProgramResult chat = RunProgram({"chat", "-m", GuideModel(), "--no-save", "-n", "30", "--trace", path},
                                        Input("How do I run a batch?\nAnd how do I leave?\n/new\nHello\n"));
  EXPECT_EQ(chat.status, 0) << chat.err;
  const Json replay = ReplayJson(path);
  EXPECT_EQ(replay["requests"], 3);
  EXPECT_GT(replay["cached_tokens"], 0);
}

TEST(TraceProgramTest, CancelledAndKilledChatIsReplayed) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/trace";
  const std::string model = CopyGuideModel(directory.path() + "/model", {.context = 100'000});
  const std::string x = GuideTokenId("x");
  ASSERT_NE(x, "");
  PtyProgram chat({"chat", "-m", model, "--no-save", "--allowed-token-ids", x, "--trace", path});
  ASSERT_TRUE(chat.WaitFor(">>> "));
  chat.Send("hello\r");
  ASSERT_TRUE(chat.WaitFor(" x x x"));
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor(">>> "));
  chat.Send("again\r");
  ASSERT_TRUE(chat.WaitFor(" x x x"));
  kill(chat.pid(), SIGKILL);
  EXPECT_EQ(chat.WaitForExit(), 128 + SIGKILL);
  const ProgramResult replay = RunProgram({"trace", "replay", path});
  EXPECT_EQ(replay.status, 0) << replay.err;
  EXPECT_NE(replay.err.find("the end of the engine is not recorded"), std::string::npos) << replay.err;
  const ProgramResult show = RunProgram({"trace", "show", path});
  EXPECT_NE(show.out.find("1 (abort)"), std::string::npos);
}

TEST(TraceProgramTest, FullDiskIsAWarning) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/trace";
  ProgramOptions options = Input("one\ntwo\nthree\nfour\n");
  options.program = "/bin/sh";
  // The unit of ulimit -f is 512 or 1024 bytes. Standard output is a pipe, which it does not limit.
  const ProgramResult result = RunProgram(
      {"-c",
       "ulimit -f 1; exec \"$0\" batch --input-format txt --ordered --format text -n 60 --ignore-eos -m \"$1\" "
       "--trace \"$2\" -",
       VLLMCLI_BINARY, GuideModel(), path},
      options);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n') >= 4, true);
  const std::string warning = "ends early, because writing it failed: File too large";
  const size_t first = result.err.find(warning);
  ASSERT_NE(first, std::string::npos) << result.err;
  EXPECT_EQ(result.err.find(warning, first + 1), std::string::npos) << result.err;
  const ProgramResult replay = RunProgram({"trace", "replay", path});
  EXPECT_EQ(replay.status, 0) << replay.err;
}

}  // namespace
}  // namespace vllm::app
