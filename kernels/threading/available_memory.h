// How much more memory this process may take: the least of what the machine, its control groups and the limits of the
// process leave. Any thread may call this.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "kernels/threading/cgroup_limits.h"

namespace vllm {

struct AvailableMemory {
  int64_t bytes = std::numeric_limits<int64_t>::max();
  std::string bound = "no known limit";  // what sets it, for messages: "MemAvailable", a file, "RLIMIT_AS (ulimit -v)"
};

// What is left under each limit, in bytes; absent where it is unknown or there is no limit.
struct MemoryLeft {
  // Memory that holds data. A page counts once it is written or read.
  std::optional<int64_t> machine;  // MemAvailable
  std::optional<int64_t> cgroup;
  std::string cgroup_file;
  // Address space. A page counts from when it is mapped.
  std::optional<int64_t> address_space;  // RLIMIT_AS - VmSize
  std::optional<int64_t> data;           // RLIMIT_DATA - VmData
  std::optional<int64_t> commit;         // CommitLimit - Committed_AS, where vm.overcommit_memory is 2
};

// The tightest limit. `untouched_bytes`: mapped by this process and needed, but not written or read so far. They still
// have to fit into memory, but are part of the address space already.
AvailableMemory LeastOf(const MemoryLeft& left, int64_t untouched_bytes);

// Where MemoryLeft comes from. Only tests use other values than these.
struct MemoryPaths {
  std::string proc = "/proc";
  CgroupPaths cgroups;
};

// `address_space_limit`, `data_limit`: RLIMIT_AS and RLIMIT_DATA; absent: unlimited.
MemoryLeft ReadMemoryLeft(const MemoryPaths& paths, std::optional<int64_t> address_space_limit,
                          std::optional<int64_t> data_limit);

// Whether RLIMIT_AS is set, so that address space which is reserved and never used is lost to the KV cache.
bool AddressSpaceIsLimited();

// The least of what is left to this process now.
AvailableMemory ReadAvailableMemory(int64_t untouched_bytes = 0);

}  // namespace vllm
