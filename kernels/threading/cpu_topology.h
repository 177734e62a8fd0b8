// CpuTopology: the CPUs this process may use, which of them share a core and which node of memory is near each. Decides
// how many threads there are and where ranks run: two threads on one core gain nothing in arithmetic, and a rank whose
// threads stay on one node finds the weights and the KV cache there, because it was the first to write them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/threading/cgroup_limits.h"

namespace vllm {

class CpuTopology {
 public:
  // From the system's files below `root`, and the CPU quota of this process's control groups. A CPU of
  // which nothing is known is a core of its own, on node 0.
  explicit CpuTopology(const std::vector<int>& usable, const std::string& root = "/sys/devices/system",
                       const CgroupPaths& cgroups = {});

  // Cores of which at least one CPU may be used; fewer where the quota gives less time. At least 1.
  int64_t num_cores() const;
  // Nodes that have such a core.
  int64_t num_nodes() const;
  int64_t num_cpus() const { return static_cast<int64_t>(cpus_.size()); }
  // Threads that can run at the same time: the CPUs, or fewer where the quota gives less time. At least 1.
  int64_t num_threads_at_once() const;
  int NodeOf(int cpu) const;

  // The CPUs of each rank, one a thread: cores before their second CPUs, and of one node where it has enough. Empty
  // when there are fewer CPUs than threads.
  std::vector<std::vector<int>> Place(int64_t num_ranks, int64_t threads_per_rank) const;

 private:
  struct Cpu {
    int id;
    int sibling;  // how many usable CPUs of the same core come before it
    int node;
  };

  std::vector<Cpu> cpus_;  // by id
  int64_t quota_cores_;
};

}  // namespace vllm
