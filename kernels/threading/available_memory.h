// The amount of memory that this process can still take: the minimum of what the machine, the control groups and the
// process limits allow. Any thread may call this.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "kernels/threading/cgroup_limits.h"

namespace vllm::kernels {

struct AvailableMemory {
  int64_t bytes = std::numeric_limits<int64_t>::max();
  // The tightest limit, for messages: "MemAvailable", a file, "RLIMIT_AS (ulimit -v)".
  std::string bound = "no known limit";
};

// The remaining bytes under each limit; absent if unknown or unlimited.
struct MemoryLeft {
  // Physical memory. A page counts once it is written or read.
  std::optional<int64_t> machine;  // MemAvailable
  std::optional<int64_t> cgroup;
  std::string cgroup_file;
  // Address space. A page counts once it is mapped.
  std::optional<int64_t> address_space;  // RLIMIT_AS - VmSize
  std::optional<int64_t> data;           // RLIMIT_DATA - VmData
  std::optional<int64_t> commit;         // CommitLimit - Committed_AS, if vm.overcommit_memory is 2
};

// Returns the tightest limit. `untouched_bytes` counts pages that this process has mapped and will need, but has not
// touched yet. They still have to fit in physical memory, but already count as address space.
AvailableMemory LeastOf(const MemoryLeft& left, int64_t untouched_bytes);

// The sources of MemoryLeft. Only tests change them.
struct MemoryPaths {
  std::string proc = "/proc";
  CgroupPaths cgroups;
};

// `address_space_limit` and `data_limit` are RLIMIT_AS and RLIMIT_DATA; absent: unlimited.
MemoryLeft ReadMemoryLeft(const MemoryPaths& paths, std::optional<int64_t> address_space_limit,
                          std::optional<int64_t> data_limit);

// Returns true if RLIMIT_AS is set. Then address space that is reserved but never used reduces the KV cache.
bool AddressSpaceIsLimited();

// Returns the tightest limit of this process now.
AvailableMemory ReadAvailableMemory(int64_t untouched_bytes = 0);

}  // namespace vllm::kernels
