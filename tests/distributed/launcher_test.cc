// Tests how a launcher of MPI is recognized, and how the processes on one machine divide it.
#include "engine/distributed/launcher.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/distributed/process_placement.h"

namespace vllm {
namespace {

std::optional<LaunchInfo> Detect(const std::map<std::string, std::string>& environment) {
  return DetectLaunch([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(LauncherTest, ProcessWithoutALauncherRunsAlone) { EXPECT_FALSE(Detect({})); }

TEST(LauncherTest, OpenMpiIsRecognized) {
  const auto launch = Detect({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "2"}});
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->rank, 2);
  EXPECT_EQ(launch->size, 4);
  EXPECT_EQ(launch->libraries.front(), "openmpi");
  EXPECT_FALSE(launch->binds_cpus);
}

TEST(LauncherTest, MpichIsRecognized) {
  const auto launch = Detect({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->libraries.front(), "mpich");
}

TEST(LauncherTest, SrunWithPmixIsRecognized) {
  const auto launch = Detect({{"PMIX_RANK", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "1"}});
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->rank, 1);
  EXPECT_EQ(launch->size, 8);
}

TEST(LauncherTest, BatchScriptOfSlurmRunsAlone) {
  EXPECT_FALSE(Detect({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "0"}}));
}

TEST(LauncherTest, OneProcessRunsAlone) {
  EXPECT_FALSE(Detect({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
}

TEST(LauncherTest, ValuesThatMakeNoSenseAreIgnored) {
  for (const char* rank : {"", "x", "-1", "1x", "4", "99999999999"}) {
    EXPECT_FALSE(Detect({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "4"}})) << rank;
  }
}

TEST(ProcessPlacementTest, ProcessesWithTheSameCpusShareThem) {
  const std::vector<HostMessage> hosts = {{"a", {0, 1, 2, 3}, 0}, {"a", {0, 1, 2, 3}, 0}, {"b", {0, 1, 2, 3}, 0}};
  const std::vector<PlaceMessage> places = PlaceProcesses(hosts);
  EXPECT_EQ(places[0].num_local_processes, 2);
  EXPECT_EQ(places[0].num_sharing, 2);
  EXPECT_EQ(places[0].share_index, 0);
  EXPECT_EQ(places[1].share_index, 1);
  EXPECT_EQ(places[2].num_local_processes, 1);
  EXPECT_EQ(places[2].num_sharing, 1);
}

TEST(ProcessPlacementTest, ProcessesThatTheLauncherHasSeparatedKeepTheirCpus) {
  const std::vector<PlaceMessage> places = PlaceProcesses(std::vector<HostMessage>{{"a", {0, 1}, 0}, {"a", {2, 3}, 0}});
  EXPECT_EQ(places[1].num_local_processes, 2);
  EXPECT_EQ(places[1].num_sharing, 1);
}

TEST(ProcessPlacementTest, SharesAreDisjoint) {
  // Without files about them, all CPUs are cores of one node.
  const std::vector<int> usable = {0, 1, 2, 3, 4, 5};
  const kernels::CpuTopology topology(usable, "/nonexistent");
  std::vector<int> all;
  for (int64_t i = 0; i < 3; ++i) {
    const std::vector<int> share = ShareOfCpus(topology, usable, {3, 3, i});
    EXPECT_EQ(share.size(), 2u);
    all.insert(all.end(), share.begin(), share.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, usable);
}

TEST(ProcessPlacementTest, MoreProcessesThanCpusGetOneEach) {
  const std::vector<int> usable = {4, 5};
  const kernels::CpuTopology topology(usable, "/nonexistent");
  EXPECT_EQ(ShareOfCpus(topology, usable, {3, 3, 2}), (std::vector<int>{4}));
}

TEST(ProcessPlacementTest, ProcessAloneKeepsItsCpus) {
  EXPECT_EQ(ShareOfCpus(kernels::CpuTopology({0, 1}, "/nonexistent"), {0, 1}, {1, 1, 0}), std::vector<int>());
}

TEST(ProcessPlacementTest, WarnsIfTheLauncherLeavesMostCpusUnused) {
  const std::vector<HostMessage> hosts = {{"a", {0}, 64}, {"a", {1}, 64}, {"b", {0, 1}, 2}, {"c", {0}, 0}};
  EXPECT_EQ(BindingWarnings(hosts),
            std::vector<std::string>{"mpirun has bound the 2 ranks on a to 2 of its 64 CPUs; mpirun --bind-to none "
                                     "lets them use all"});
}

}  // namespace
}  // namespace vllm
