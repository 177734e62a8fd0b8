#include "kernels/threading/available_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_directory.h"

namespace vllm::kernels {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(AvailableMemoryTest, TheTightestLimitIsReportedByName) {
  MemoryLeft left;
  EXPECT_EQ(LeastOf(left, 0).bytes, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(LeastOf(left, 0).bound, "no known limit");
  left.machine = 900 * kMiB;
  EXPECT_EQ(LeastOf(left, 0).bytes, 900 * kMiB);
  EXPECT_EQ(LeastOf(left, 0).bound, "MemAvailable");
  left.cgroup = 800 * kMiB;
  left.cgroup_file = "/sys/fs/cgroup/memory.max";
  EXPECT_EQ(LeastOf(left, 0).bound, "/sys/fs/cgroup/memory.max");
  left.address_space = 700 * kMiB;
  EXPECT_EQ(LeastOf(left, 0).bound, "RLIMIT_AS (ulimit -v)");
  left.data = 600 * kMiB;
  EXPECT_EQ(LeastOf(left, 0).bound, "RLIMIT_DATA (ulimit -d)");
  left.commit = 500 * kMiB;
  EXPECT_EQ(LeastOf(left, 0).bytes, 500 * kMiB);
  EXPECT_EQ(LeastOf(left, 0).bound, "CommitLimit (vm.overcommit_memory 2)");
}

TEST(AvailableMemoryTest, UntouchedBytesReducePhysicalMemoryButNotAddressSpace) {
  MemoryLeft left;
  left.machine = 900 * kMiB;
  left.address_space = 850 * kMiB;
  EXPECT_EQ(LeastOf(left, 0).bytes, 850 * kMiB);
  EXPECT_EQ(LeastOf(left, 100 * kMiB).bytes, 800 * kMiB);
  EXPECT_EQ(LeastOf(left, 100 * kMiB).bound, "MemAvailable");
  EXPECT_EQ(LeastOf(left, 2000 * kMiB).bytes, 0);
}

TEST(AvailableMemoryTest, RaisingALimitNeverReducesAvailableMemory) {
  for (const auto limit : {&MemoryLeft::machine, &MemoryLeft::cgroup, &MemoryLeft::address_space, &MemoryLeft::data,
                           &MemoryLeft::commit}) {
    MemoryLeft left;
    left.machine = left.cgroup = left.address_space = left.data = left.commit = 400 * kMiB;
    int64_t before = 0;
    for (int64_t bytes = 0; bytes <= 800 * kMiB; bytes += 7 * kMiB) {
      left.*limit = bytes;
      const int64_t available = LeastOf(left, 50 * kMiB).bytes;
      EXPECT_GE(available, before);
      before = available;
    }
  }
}

// A fake /proc. There are no control groups unless a test adds them.
class MemoryLeftTest : public ::testing::Test {
 protected:
  MemoryLeftTest() {
    std::filesystem::create_directories(directory_.path() + "/self");
    std::filesystem::create_directories(directory_.path() + "/sys/vm");
    directory_.Write("meminfo",
                     "MemTotal:  9000 kB\nMemAvailable:    5000 kB\nCommitLimit:  8000 kB\nCommitted_AS:  2000 kB\n");
    directory_.Write("self/status", "Name:\tx\nVmPeak:\t  900 kB\nVmSize:\t    700 kB\nVmData:\t    300 kB\n");
    directory_.Write("sys/vm/overcommit_memory", "0\n");
  }
  MemoryLeft Read(std::optional<int64_t> address_space_limit = {}, std::optional<int64_t> data_limit = {}) {
    return ReadMemoryLeft({directory_.path(), {"", "", ""}}, address_space_limit, data_limit);
  }

  TempDirectory directory_;
};

TEST_F(MemoryLeftTest, LimitsThatAreNotSetAreAbsent) {
  const MemoryLeft left = Read();
  EXPECT_EQ(left.machine, 5000 * 1024);
  EXPECT_EQ(left.cgroup, std::nullopt);
  EXPECT_EQ(left.address_space, std::nullopt);
  EXPECT_EQ(left.data, std::nullopt);
  EXPECT_EQ(left.commit, std::nullopt);
}

TEST_F(MemoryLeftTest, ProcessLimitsAreReducedByUsage) {
  const MemoryLeft left = Read(1000 * 1024, 350 * 1024);
  EXPECT_EQ(left.address_space, 300 * 1024);
  EXPECT_EQ(left.data, 50 * 1024);
  EXPECT_EQ(Read(600 * 1024).address_space, 0);
}

TEST_F(MemoryLeftTest, CommitLimitCountsOnlyInOvercommitModeTwo) {
  directory_.Write("sys/vm/overcommit_memory", "2\n");
  EXPECT_EQ(Read().commit, 6000 * 1024);
  directory_.Write("sys/vm/overcommit_memory", "1\n");
  EXPECT_EQ(Read().commit, std::nullopt);
}

TEST_F(MemoryLeftTest, ControlGroupLimitIsReportedWithTheFileThatSetsIt) {
  directory_.Write("memberships", "0::/\n");
  directory_.Write("mounts", "30 23 0:26 / /group rw - cgroup2 cgroup rw\n");
  std::filesystem::create_directories(directory_.path() + "/group");
  directory_.Write("group/memory.max", "4096\n");
  directory_.Write("group/memory.current", "1024\n");
  const MemoryLeft left = ReadMemoryLeft(
      {directory_.path(), {directory_.path() + "/memberships", directory_.path() + "/mounts", directory_.path()}}, {},
      {});
  EXPECT_EQ(left.cgroup, 3072);
  EXPECT_EQ(left.cgroup_file, directory_.path() + "/group/memory.max");
}

TEST_F(MemoryLeftTest, DamagedFilesGiveNeitherLimitsNorUsage) {
  directory_.Write("meminfo", "MemAvailable:\nCommitLimit: 99999999999999999999 kB\n");
  directory_.Write("self/status", "VmSize");
  directory_.Write("sys/vm/overcommit_memory", "2\n");
  const MemoryLeft left = Read(1000);
  EXPECT_EQ(left.machine, std::nullopt);
  EXPECT_EQ(left.commit, std::nullopt);
  EXPECT_EQ(left.address_space, 1000);
}

}  // namespace
}  // namespace vllm::kernels
