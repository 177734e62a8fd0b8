// The amount of memory that this process can still allocate: the minimum of what the machine, the control groups and
// the process limits allow. Any thread may call these functions.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "kernels/threading/cgroup_limits.h"

namespace vllm::kernels {

struct AvailableMemory {
  int64_t bytes = std::numeric_limits<int64_t>::max();
  // The name of the tightest limit, for messages, such as "RLIMIT_AS (ulimit -v)" or the path of a cgroup file.
  std::string bound = "no known limit";
};

// The bytes that each limit still leaves. Absent: the limit is unknown or not set.
struct MemoryLeft {
  // Physical memory. A page counts once it is first written.
  std::optional<int64_t> machine;  // MemAvailable
  std::optional<int64_t> cgroup;
  std::string cgroup_file;  // the file that sets the limit
  // Address space. A page counts once it is mapped.
  std::optional<int64_t> address_space;  // RLIMIT_AS - VmSize
  std::optional<int64_t> data;           // RLIMIT_DATA - VmData
  std::optional<int64_t> commit;         // CommitLimit - Committed_AS, if vm.overcommit_memory is 2
};

// Returns the tightest limit. `untouched_bytes` is the size of the pages that this process has mapped and will need,
// but has not touched yet. They still have to fit in physical memory, but already count as address space.
AvailableMemory LeastOf(const MemoryLeft& left, int64_t untouched_bytes);

// The sources of MemoryLeft. Only tests change them.
struct MemoryPaths {
  std::string proc = "/proc";
  CgroupPaths cgroups;
};

// `address_space_limit` and `data_limit` are RLIMIT_AS and RLIMIT_DATA; absent: unlimited.
MemoryLeft ReadMemoryLeft(const MemoryPaths& paths, std::optional<int64_t> address_space_limit,
                          std::optional<int64_t> data_limit);

// Returns true if RLIMIT_AS is set. Then reserved address space counts against the limit even if it is never used, and
// leaves less for the KV cache.
bool AddressSpaceIsLimited();

// Returns the tightest limit of this process now.
AvailableMemory ReadAvailableMemory(int64_t untouched_bytes = 0);

}  // namespace vllm::kernels
