#include "kernels/threading/cpu_topology.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "tests/support/temp_directory.h"

namespace vllm::kernels {
namespace {

// A fake /sys/devices/system. Describe creates `nodes` NUMA nodes with `cores` cores each. With `has_siblings`, each
// core has a second CPU. The ids of the second CPUs follow those of the first CPUs of all cores.
class CpuTopologyTest : public ::testing::Test {
 protected:
  void Describe(int nodes, int cores, bool has_siblings) {
    const int total = nodes * cores;
    Write("node/online", nodes == 1 ? "0" : "0-" + std::to_string(nodes - 1));
    for (int node = 0; node < nodes; ++node) {
      std::string list = std::to_string(node * cores) + "-" + std::to_string((node + 1) * cores - 1);
      if (has_siblings) {
        list += "," + std::to_string(total + node * cores) + "-" + std::to_string(total + (node + 1) * cores - 1);
      }
      Write("node/node" + std::to_string(node) + "/cpulist", list);
    }
    for (int cpu = 0; cpu < total * (has_siblings ? 2 : 1); ++cpu) {
      const std::string first = std::to_string(cpu % total);
      Write("cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
            has_siblings ? first + "," + std::to_string(cpu % total + total) : first);
    }
  }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(directory_.path()) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  CpuTopology Topology(int num_cpus) {
    std::vector<int> cpus(static_cast<size_t>(num_cpus));
    std::iota(cpus.begin(), cpus.end(), 0);
    return CpuTopology(cpus, directory_.path(), Cgroups());
  }
  // Returns the paths of a version 2 group whose files are in the directory "group".
  CgroupPaths Cgroups() {
    directory_.Write("memberships", "0::/\n");
    directory_.Write("mounts", "30 23 0:26 / /group rw - cgroup2 cgroup rw\n");
    return {directory_.path() + "/memberships", directory_.path() + "/mounts", directory_.path()};
  }

  TempDirectory directory_;
};

using Ranks = std::vector<std::vector<int>>;

TEST_F(CpuTopologyTest, HyperthreadsDoNotCountAsCores) {
  Describe(1, 8, true);
  const CpuTopology topology = Topology(16);
  EXPECT_EQ(topology.num_cores(), 8);
  EXPECT_EQ(topology.num_cpus(), 16);
  EXPECT_EQ(topology.num_nodes(), 1);
}

TEST_F(CpuTopologyTest, CoreWithOneUsableHyperthreadCountsAsACore) {
  Describe(1, 4, true);
  const CpuTopology topology({1, 5, 6}, directory_.path(), Cgroups());
  EXPECT_EQ(topology.num_cores(), 2);
  EXPECT_EQ(topology.Place(2, 1), (Ranks{{1}, {6}}));
  EXPECT_EQ(topology.Place(3, 1), (Ranks{{1}, {6}, {5}}));
}

TEST_F(CpuTopologyTest, RanksAreSpreadOverNodesAndEachStaysOnOneNode) {
  Describe(2, 4, true);
  const CpuTopology topology = Topology(16);
  EXPECT_EQ(topology.num_nodes(), 2);
  EXPECT_EQ(topology.NodeOf(2), 0);
  EXPECT_EQ(topology.NodeOf(12), 1);
  EXPECT_EQ(topology.Place(2, 4), (Ranks{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(topology.Place(2, 2), (Ranks{{0, 1}, {4, 5}}));
  EXPECT_EQ(topology.Place(4, 2), (Ranks{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
}

TEST_F(CpuTopologyTest, RankThatFitsOnNoNodeUsesCpusOfSeveralNodes) {
  Describe(2, 4, false);
  const CpuTopology topology = Topology(8);
  EXPECT_EQ(topology.Place(1, 6), (Ranks{{0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(topology.Place(2, 3), (Ranks{{0, 1, 2}, {4, 5, 6}}));
  EXPECT_EQ(topology.Place(3, 3), Ranks());
  Describe(2, 2, true);
  EXPECT_EQ(Topology(8).Place(1, 6), (Ranks{{0, 1, 2, 3, 4, 5}}));
}

TEST_F(CpuTopologyTest, AQuotaLimitsTheCores) {
  Describe(1, 8, false);
  Write("group/cpu.max", "250000 100000");
  EXPECT_EQ(Topology(8).num_cores(), 3);
  Write("group/cpu.max", "max 100000");
  EXPECT_EQ(Topology(8).num_cores(), 8);
  Write("group/cpu.max", "1 100000");
  EXPECT_EQ(Topology(8).num_cores(), 1);
}

TEST_F(CpuTopologyTest, WithoutFilesEachCpuIsACore) {
  const CpuTopology topology = Topology(3);
  EXPECT_EQ(topology.num_cores(), 3);
  EXPECT_EQ(topology.num_nodes(), 1);
  EXPECT_EQ(topology.Place(1, 3), (Ranks{{0, 1, 2}}));
}

TEST_F(CpuTopologyTest, InvalidFilesAreIgnored) {
  Write("node/online", "0-1,zebra");
  Write("node/node0/cpulist", "0-99999999999999999999");
  Write("node/node1/cpulist", "5-2,,-");
  Write("cpu/cpu0/topology/thread_siblings_list", "-1,");
  Write("cpu/cpu1/topology/thread_siblings_list", "7-");
  Write("group/cpu.max", "-5 0");
  const CpuTopology topology = Topology(2);
  EXPECT_EQ(topology.num_cores(), 2);
  EXPECT_EQ(topology.num_nodes(), 1);
}

}  // namespace
}  // namespace vllm::kernels
