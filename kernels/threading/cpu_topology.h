// CpuTopology: the CPUs that this process may use, which of them share a core, and their NUMA nodes. Determines the
// default number of threads and the CPUs on which ranks run. A second hyperthread on a core does not speed up
// arithmetic. A rank that stays on one NUMA node has its KV cache and the weights that it packed in the memory of that
// node, because its threads were the first to write them. Immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/threading/cgroup_limits.h"

namespace vllm::kernels {

class CpuTopology {
 public:
  // Reads the files below `root` and the CPU quota of this process's control groups. A CPU without a list of siblings
  // counts as a separate core, and a CPU in no node's list is assigned to node 0.
  explicit CpuTopology(const std::vector<int>& usable, const std::string& root = "/sys/devices/system",
                       const CgroupPaths& cgroups = {});

  // Returns the number of cores with at least one usable CPU, limited by the quota. At least 1.
  int64_t num_cores() const;
  // Returns the number of NUMA nodes with a usable CPU. At least 1.
  int64_t num_nodes() const;
  int64_t num_cpus() const { return static_cast<int64_t>(cpus_.size()); }
  // Returns the number of threads that can run at the same time: the CPUs, limited by the quota. At least 1.
  int64_t num_threads_at_once() const;
  // Returns the NUMA node of a usable CPU, and 0 for any other.
  int NodeOf(int cpu) const;

  // Returns the CPUs of each rank, one per thread. Uses one CPU of every core before any hyperthread sibling. Spreads
  // ranks over the NUMA nodes. A rank whose node has too few free cores gets the next node that has enough; if there is
  // none, its CPUs may be on several nodes. Returns an empty vector if there are fewer CPUs than threads.
  std::vector<std::vector<int>> Place(int64_t num_ranks, int64_t threads_per_rank) const;

 private:
  struct Cpu {
    int id;
    int sibling;  // number of usable CPUs of the same core with a lower id
    int node;
  };

  std::vector<Cpu> cpus_;  // ascending ids
  int64_t quota_cores_;
};

}  // namespace vllm::kernels
