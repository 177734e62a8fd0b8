// Runs the program under a range of address-space limits, and with --max-output-memory.
// scripts/check_memory_limits.sh tries more address-space limits.
#include <gtest/gtest.h>

#include "tests/program/program.h"

namespace vllm::app {
namespace {

// These sanitizers reserve terabytes of address space, so the program cannot run under the limits below.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// Returns the number of KV blocks in the output of --stats, or -1 if it is missing.
int64_t GetNumBlocks(const std::string& stats) {
  const size_t end = stats.rfind(" blocks");
  if (end == std::string::npos) return -1;
  return std::stoll(stats.substr(stats.rfind(' ', end - 1) + 1));
}

TEST(MemoryLimitTest, HigherAddressSpaceLimitNeverGivesFewerKVBlocks) {
  ProgramOptions shell;
  shell.program = "/bin/sh";
  int64_t blocks_before = -1;
  // The libraries alone need about 40 MiB of address space.
  for (int64_t mebibytes = 50; mebibytes <= 410; mebibytes += 30) {
    const std::string limit = "ulimit -v " + std::to_string(mebibytes * 1024) + " && exec \"$0\" \"$@\"";
    const ProgramResult result =
        RunProgram({"-c", limit, VLLMCLI_BINARY, "run", "-m", GuideModel(), "-n", "2", "--stats", "hello"}, shell);
    SCOPED_TRACE(std::to_string(mebibytes) + " MiB: " + result.err);
    if (blocks_before < 0 && result.status != 0) {
      EXPECT_EQ(result.status, 4);
      EXPECT_NE(result.err.find("RLIMIT_AS (ulimit -v)"), std::string::npos);
      continue;
    }
    ASSERT_EQ(result.status, 0);
    const int64_t blocks = GetNumBlocks(result.err);
    EXPECT_GE(blocks, blocks_before);
    EXPECT_GT(blocks, 0);
    blocks_before = blocks;
  }
  EXPECT_GT(blocks_before, 0);
}

TEST(MemoryLimitTest, ARequestWhoseOutputMayExceedTheLimitIsRejectedWithTheNumbers) {
  ProgramOptions shell;
  shell.program = "/bin/sh";
  const auto run = [&](const std::string& n) {
    return RunProgram(
        {"-c", "ulimit -v 4194304 && exec \"$0\" \"$@\"", VLLMCLI_BINARY, "run", "-m", GuideModel(), "--n", n, "-t",
         "1", "--logprobs", "20", "--max-tokens", "100000", "--max-output-memory", "200M", "hello"},
        shell);
  };
  const ProgramResult above_limit = run("1000");
  EXPECT_EQ(above_limit.status, 2);
  EXPECT_NE(above_limit.err.find("n: above 128 (1000)"), std::string::npos) << above_limit.err;
  const ProgramResult at_limit = run("128");
  EXPECT_EQ(at_limit.status, 1);
  EXPECT_NE(at_limit.err.find("(n 128 x max_tokens "), std::string::npos) << at_limit.err;
  EXPECT_NE(at_limit.err.find("limit 200000000; lower n"), std::string::npos) << at_limit.err;
}

#endif

TEST(MemoryLimitTest, BatchRowsWaitForMemoryAndARowThatMayExceedTheLimitIsRejected) {
  std::string rows;
  for (int i = 0; i < 12; ++i)
    rows += "{\"prompt\": \"hello\", \"max_tokens\": 20, \"logprobs\": 20, \"temperature\": 0}\n";
  rows += "{\"prompt\": \"hello\", \"max_tokens\": 500, \"logprobs\": 20, \"temperature\": 0}\n";
  const auto run = [&](const std::string& limit) {
    return RunProgram(
        {"batch", "-", "--input-format", "jsonl", "-m", GuideModel(), "--ordered", "--max-output-memory", limit},
        Input(rows));
  };
  // The lower limit is enough for two short rows at a time. The last row alone could exceed it and is therefore
  // rejected.
  const ProgramResult narrow = run("400K");
  EXPECT_EQ(narrow.status, 1) << narrow.err;
  EXPECT_NE(narrow.out.find("\"code\":\"invalid_request\""), std::string::npos) << narrow.out;
  const ProgramResult wide = run("1G");
  EXPECT_EQ(wide.status, 0) << wide.err;
  const auto first_rows = [](const std::string& text) { return text.substr(0, text.find("{\"index\":12")); };
  EXPECT_EQ(first_rows(narrow.out), first_rows(wide.out));
  EXPECT_NE(narrow.out.find("{\"index\":11"), std::string::npos);
}

}  // namespace
}  // namespace vllm::app
