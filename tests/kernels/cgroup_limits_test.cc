#include "kernels/threading/cgroup_limits.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_directory.h"

namespace vllm::kernels {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// A control-group tree in a temporary directory.
class CgroupLimitsTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(directory_.path()) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::trunc) << text << "\n";
  }
  void WriteGroup(const std::string& group, const std::string& limit, int64_t usage, int64_t inactive_file = 0) {
    Write(group + "/memory.max", limit);
    Write(group + "/memory.current", std::to_string(usage));
    Write(group + "/memory.stat", "anon 1\ninactive_anon 5\ninactive_file " + std::to_string(inactive_file));
  }
  void WriteV1Group(const std::string& group, const std::string& limit, int64_t usage, int64_t inactive_file = 0) {
    Write(group + "/memory.limit_in_bytes", limit);
    Write(group + "/memory.usage_in_bytes", std::to_string(usage));
    Write(group + "/memory.stat", "inactive_file 7\ntotal_inactive_file " + std::to_string(inactive_file));
  }
  void MountV2(const std::string& membership, const std::string& mount_root = "/") {
    Write("memberships", "0::" + membership);
    Write("mounts", "23 1 8:1 / / rw - ext4 /dev/sda rw\n30 23 0:26 " + mount_root +
                        " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup rw,nsdelegate");
  }
  void MountV1(const std::string& membership, const std::string& mount_root = "/") {
    Write("memberships", "9:memory:" + membership + "\n4:cpu,cpuacct:" + membership + "\n1:name=systemd:/elsewhere");
    Write("mounts",
          "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
          "32 31 0:29 " +
              mount_root +
              " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
              "35 31 0:32 " +
              mount_root +
              " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
              "36 31 0:33 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd");
  }
  CgroupLimits Read() {
    return ReadCgroupLimits({directory_.path() + "/memberships", directory_.path() + "/mounts", directory_.path()});
  }
  std::string File(const std::string& path) { return directory_.path() + "/" + path; }

  TempDirectory directory_;
};

TEST_F(CgroupLimitsTest, MissingFilesSetNoLimit) {
  const CgroupLimits limits = Read();
  EXPECT_EQ(limits.available_memory_bytes, std::nullopt);
  EXPECT_EQ(limits.memory_limit_file, "");
  EXPECT_EQ(limits.num_cores, std::nullopt);
}

TEST_F(CgroupLimitsTest, Version2LeafLimitIsReducedByUsage) {
  MountV2("/user.slice/run.scope");
  WriteGroup("sys/fs/cgroup/user.slice/run.scope", std::to_string(4 * kGiB), kGiB);
  EXPECT_EQ(Read().available_memory_bytes, 3 * kGiB);
  EXPECT_EQ(Read().memory_limit_file, File("sys/fs/cgroup/user.slice/run.scope/memory.max"));
}

TEST_F(CgroupLimitsTest, Version2ParentLimitsItsChildren) {
  MountV2("/user.slice/session.slice/run.scope");
  WriteGroup("sys/fs/cgroup/user.slice/session.slice/run.scope", "max", kGiB);
  WriteGroup("sys/fs/cgroup/user.slice/session.slice", std::to_string(2 * kGiB), kGiB / 2);
  WriteGroup("sys/fs/cgroup/user.slice", std::to_string(8 * kGiB), kGiB);
  EXPECT_EQ(Read().available_memory_bytes, 3 * kGiB / 2);
  EXPECT_EQ(Read().memory_limit_file, File("sys/fs/cgroup/user.slice/session.slice/memory.max"));
}

TEST_F(CgroupLimitsTest, InactivePageCacheCountsAsAvailable) {
  MountV2("/a");
  WriteGroup("sys/fs/cgroup/a", std::to_string(4 * kGiB), 3 * kGiB, 2 * kGiB);
  EXPECT_EQ(Read().available_memory_bytes, 3 * kGiB);
  WriteGroup("sys/fs/cgroup/a", std::to_string(4 * kGiB), kGiB, 9 * kGiB);
  EXPECT_EQ(Read().available_memory_bytes, 4 * kGiB);
}

TEST_F(CgroupLimitsTest, MemoryHighIsALimit) {
  MountV2("/a");
  WriteGroup("sys/fs/cgroup/a", std::to_string(4 * kGiB), kGiB);
  Write("sys/fs/cgroup/a/memory.high", std::to_string(2 * kGiB));
  EXPECT_EQ(Read().available_memory_bytes, kGiB);
  EXPECT_EQ(Read().memory_limit_file, File("sys/fs/cgroup/a/memory.high"));
}

TEST_F(CgroupLimitsTest, UsageAboveTheLimitLeavesZeroBytes) {
  MountV2("/a");
  WriteGroup("sys/fs/cgroup/a", std::to_string(kGiB), 2 * kGiB);
  EXPECT_EQ(Read().available_memory_bytes, 0);
}

TEST_F(CgroupLimitsTest, SmallestCpuQuotaOfTheGroupAndItsParentsWins) {
  MountV2("/a/b");
  Write("sys/fs/cgroup/a/b/cpu.max", "max 100000");
  EXPECT_EQ(Read().num_cores, std::nullopt);
  Write("sys/fs/cgroup/a/cpu.max", "250000 100000");
  Write("sys/fs/cgroup/cpu.max", "600000 100000");
  EXPECT_EQ(Read().num_cores, 3);
  Write("sys/fs/cgroup/a/b/cpu.max", "1 100000");
  EXPECT_EQ(Read().num_cores, 1);
}

TEST_F(CgroupLimitsTest, Version1LeafLimitIsReducedByUsage) {
  MountV1("/docker/c1");
  WriteV1Group("sys/fs/cgroup/memory/docker/c1", std::to_string(4 * kGiB), 3 * kGiB, kGiB);
  Write("sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.cfs_quota_us", "150000");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.cfs_period_us", "100000");
  EXPECT_EQ(Read().available_memory_bytes, 2 * kGiB);
  EXPECT_EQ(Read().memory_limit_file, File("sys/fs/cgroup/memory/docker/c1/memory.limit_in_bytes"));
  EXPECT_EQ(Read().num_cores, 2);
}

TEST_F(CgroupLimitsTest, Version1ParentLimitsItsChildren) {
  MountV1("/docker/c1");
  WriteV1Group("sys/fs/cgroup/memory/docker/c1", "9223372036854771712", kGiB);
  WriteV1Group("sys/fs/cgroup/memory/docker", std::to_string(2 * kGiB), kGiB);
  Write("sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.cfs_quota_us", "-1");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.cfs_period_us", "100000");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "400000");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000");
  EXPECT_EQ(Read().available_memory_bytes, kGiB);
  EXPECT_EQ(Read().num_cores, 4);
}

TEST_F(CgroupLimitsTest, Version1ReportsTheLimitOfAParentThatIsNotMounted) {
  MountV1("/docker/c1", "/docker/c1");
  WriteV1Group("sys/fs/cgroup/memory", "9223372036854771712", kGiB);
  Write("sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit " + std::to_string(3 * kGiB));
  EXPECT_EQ(Read().available_memory_bytes, 2 * kGiB);
}

TEST_F(CgroupLimitsTest, BothVersionsCountIfBothAreMounted) {
  Write("memberships", "9:memory:/one\n0::/two");
  Write("mounts", "35 31 0:32 / /v1/memory rw - cgroup cgroup rw,memory\n41 31 0:38 / /v2 rw - cgroup2 cgroup2 rw");
  WriteV1Group("v1/memory/one", std::to_string(4 * kGiB), kGiB);
  Write("v2/two/cpu.max", "200000 100000");
  EXPECT_EQ(Read().available_memory_bytes, 3 * kGiB);
  EXPECT_EQ(Read().num_cores, 2);
  WriteGroup("v2", std::to_string(2 * kGiB), kGiB);
  EXPECT_EQ(Read().available_memory_bytes, kGiB);
}

TEST_F(CgroupLimitsTest, TheMountPointIsUsedIfTheGroupIsNotVisible) {
  WriteGroup("sys/fs/cgroup", std::to_string(2 * kGiB), kGiB);
  for (const char* membership : {"/../../host.slice", "/system.slice/docker-1.scope", "/docker/c10", "/"}) {
    MountV2(membership, "/docker/c1");
    EXPECT_EQ(Read().available_memory_bytes, kGiB) << membership;
  }
  MountV2("/system.slice/docker-1.scope");
  EXPECT_EQ(Read().available_memory_bytes, kGiB);
}

TEST_F(CgroupLimitsTest, GroupsAreFoundInAMountOfASubtree) {
  MountV2("/docker/c1/worker", "/docker/c1");
  WriteGroup("sys/fs/cgroup/worker", std::to_string(2 * kGiB), 0);
  EXPECT_EQ(Read().available_memory_bytes, 2 * kGiB);
}

TEST_F(CgroupLimitsTest, MountOfAnotherGroupIsIgnoredIfOurGroupIsMounted) {
  Write("memberships", "0::/ours");
  Write("mounts", "41 31 0:38 /theirs /other rw - cgroup2 cgroup2 rw\n42 31 0:38 / /all rw - cgroup2 cgroup2 rw");
  WriteGroup("other", std::to_string(kGiB), 0);
  WriteGroup("all/ours", std::to_string(4 * kGiB), 0);
  EXPECT_EQ(Read().available_memory_bytes, 4 * kGiB);
}

TEST_F(CgroupLimitsTest, MountPointMayContainSpaces) {
  Write("memberships", "0::/");
  Write("mounts", "41 31 0:38 / /a\\040b rw - cgroup2 cgroup2 rw");
  WriteGroup("a b", std::to_string(kGiB), 0);
  EXPECT_EQ(Read().available_memory_bytes, kGiB);
}

TEST_F(CgroupLimitsTest, InvalidNumbersSetNoLimit) {
  MountV2("/a");
  for (const char* text : {"", "zebra", "12 34", "-5", "1e9", "0x10", "max", "99999999999999999999999999"}) {
    WriteGroup("sys/fs/cgroup/a", text, kGiB);
    EXPECT_EQ(Read().available_memory_bytes, std::nullopt) << text;
    Write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(Read().num_cores, text == std::string("12 34") ? std::optional<int64_t>(1) : std::nullopt) << text;
  }
  Write("sys/fs/cgroup/a/cpu.max", "-5 0");
  EXPECT_EQ(Read().num_cores, std::nullopt);
}

TEST_F(CgroupLimitsTest, HugeQuotaDoesNotOverflow) {
  MountV2("/a");
  Write("sys/fs/cgroup/a/cpu.max", "99999999999999999999999999 1");
  EXPECT_EQ(Read().num_cores, std::numeric_limits<int64_t>::max());
}

TEST_F(CgroupLimitsTest, UnknownUsageLeavesTheWholeLimit) {
  MountV2("/a");
  Write("sys/fs/cgroup/a/memory.max", std::to_string(kGiB));
  Write("sys/fs/cgroup/a/memory.current", "???");
  EXPECT_EQ(Read().available_memory_bytes, kGiB);
}

TEST_F(CgroupLimitsTest, MalformedLinesOfMembershipsAndMountsAreIgnored) {
  Write("memberships", "0::\n::\nnonsense\n0:/a");
  Write("mounts", "- - - -\n1 2 3 4 5 6 -\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw");
  WriteGroup("sys/fs/cgroup", std::to_string(kGiB), 0);
  EXPECT_EQ(Read().available_memory_bytes, kGiB);
}

}  // namespace
}  // namespace vllm::kernels
