// The program under limits of its address space; scripts/check_memory_limits.sh does the same in finer steps.
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace vllm {
namespace {

// Sanitizers reserve terabytes of address space.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// KV blocks as --stats prints them.
int64_t NumKvBlocks(const std::string& stats) {
  const size_t end = stats.rfind(" blocks");
  if (end == std::string::npos) return -1;
  return std::stoll(stats.substr(stats.rfind(' ', end - 1) + 1));
}

TEST(MemoryLimitTest, AHigherAddressSpaceLimitNeverGivesLess) {
  ProgramOptions shell;
  shell.program = "/bin/sh";
  int64_t blocks_before = -1;
  for (int64_t mebibytes = 40; mebibytes <= 400; mebibytes += 12) {
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
    const int64_t blocks = NumKvBlocks(result.err);
    EXPECT_GE(blocks, blocks_before);
    EXPECT_GT(blocks, 0);
    blocks_before = blocks;
  }
  EXPECT_GT(blocks_before, 0);
}

#endif

}  // namespace
}  // namespace vllm
