// Tests stores in several processes at once, and processes that are killed.
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <random>

#include "engine/kv_store/kv_store_maintenance.h"
#include "tests/kv_store/kv_store_test_util.h"

namespace vllm {
namespace {

class KVStoreProcessesTest : public KVStoreTest {
 protected:
  // Reads all blocks first..last with a new store. Returns how many it has. Fails if one is wrong or is damaged.
  int NumReadable(int32_t first, int32_t last) const {
    KVBlockStore store(Options());
    int count = 0;
    for (int32_t number = first; number <= last; ++number) {
      const Found found = Find(store, number);
      EXPECT_NE(found, Found::kWrong) << number;
      count += found == Found::kYes ? 1 : 0;
    }
    EXPECT_EQ(store.stats().num_blocks_rejected, 0);
    return count;
  }
  // Without the lock, the sum may contain both a file that is deleted during the count and its successor.
  int64_t TotalBytesWhileLocked() const {
    const tokenizer::UniqueFd fd(open(PathOf("lock").c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(flock(fd.get(), LOCK_EX), 0);
    return TotalBytes();
  }
};

// Waits for a child that returns from `body` with an exit status.
int ExitStatus(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

TEST_F(KVStoreProcessesTest, KilledWriterLeavesOnlyCorrectBlocks) {
  payload_bytes_ = 64 << 10;
  max_bytes_ = int64_t{16} << 20;
  constexpr int kNumKills = 120;
  std::mt19937 random(7);
  int32_t first = 1;
  for (int i = 0; i < kNumKills; ++i) {
    int pipe_fds[2];
    ASSERT_EQ(pipe(pipe_fds), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(pipe_fds[0]);
      KVBlockStore store(Options());
      for (int32_t number = first;; ++number) {
        if (!Write(store, number)) _exit(3);
        if (write(pipe_fds[1], "", 1) != 1) _exit(4);
      }
    }
    close(pipe_fds[1]);
    // Kill the child at any point after the last of these blocks.
    const int num_blocks = static_cast<int>(random() % 8);
    for (int k = 0; k < num_blocks; ++k) {
      char byte = 0;
      ASSERT_EQ(read(pipe_fds[0], &byte, 1), 1);
    }
    for (volatile uint32_t spin = random() % 200000; spin > 0;) spin = spin - 1;
    ASSERT_EQ(kill(child, SIGKILL), 0);
    EXPECT_EQ(ExitStatus(child), -2);
    close(pipe_fds[0]);
    ASSERT_LE(TotalBytes(), max_bytes_);
    // All blocks that the child reported are there, unless this run exceeded the limit.
    EXPECT_GE(NumReadable(first, first + 1000), num_blocks) << i;
    first += 1000;
  }
  const KVVerification verification = VerifyKVSegments(directory_, false);
  EXPECT_EQ(verification.num_damaged_blocks, 0);
  EXPECT_EQ(verification.problems, std::vector<std::string>());
}

TEST_F(KVStoreProcessesTest, TwoProcessesWriteTheSameBlocksAtOnce) {
  payload_bytes_ = 10000;
  max_bytes_ = int64_t{16} << 20;
  const auto start = [&] {
    const pid_t child = fork();
    if (child != 0) return child;
    KVBlockStore store(Options());
    for (int32_t number = 1; number <= 300; ++number) {
      if (number % 10 == 0) store.Refresh();
      if (!Write(store, number) && !store.Contains(TestBlock(number).hash())) _exit(1);
      if (Find(store, number) != Found::kYes) _exit(2);
    }
    _exit(0);
  };
  const pid_t first = start();
  const pid_t second = start();
  EXPECT_EQ(ExitStatus(first), 0);
  EXPECT_EQ(ExitStatus(second), 0);
  EXPECT_EQ(NumReadable(1, 300), 300);
}

TEST_F(KVStoreProcessesTest, WritersOfDifferentModelsStayBelowTheLimitAtAllTimes) {
  payload_bytes_ = 2000;
  WriteRange(9001, 9100);
  WriteFile("notes.txt", std::string(100000, 'n'));
  const auto start = [&](const std::string& identity) {
    const pid_t child = fork();
    if (child != 0) return child;
    KVBlockStore::Options options = Options();
    options.identity = identity;
    KVBlockStore store(options);
    int num_written = 0;
    for (int32_t number = 1; number <= 3000; ++number) num_written += Write(store, number) ? 1 : 0;
    if (store.stats().num_blocks_rejected != 0) _exit(2);
    _exit(num_written > 1000 ? 0 : 1);
  };
  const std::vector<pid_t> children = {start("a"), start("a"), start("b")};
  // Until all children have exited.
  siginfo_t info{};
  for (const pid_t child : children) {
    do {
      if (TotalBytes() > max_bytes_) {
        ASSERT_LE(TotalBytesWhileLocked(), max_bytes_);
      }
      info.si_pid = 0;
      ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT), 0);
    } while (info.si_pid == 0);
    EXPECT_EQ(ExitStatus(child), 0);
  }
  EXPECT_LE(TotalBytes(), max_bytes_);
  EXPECT_GE(TotalBytes(), max_bytes_ * 3 / 4);
}

TEST_F(KVStoreProcessesTest, SegmentOfAKilledWriterIsResumed) {
  const pid_t child = fork();
  if (child == 0) {
    KVBlockStore store(Options());
    Write(store, 1);
    kill(getpid(), SIGKILL);
  }
  EXPECT_EQ(ExitStatus(child), -2);
  WriteRange(2, 3);
  EXPECT_EQ(Segments().size(), 1u);
  EXPECT_EQ(NumReadable(1, 3), 3);
}

}  // namespace
}  // namespace vllm
