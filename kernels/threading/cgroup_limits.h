// The memory and CPU time that this process's control groups still allow. No other file reads control-group files.
//
// A limit may be set on the process's group or on any ancestor (a systemd slice, a pod, a container). So this reads
// every group from the process's own up to the mount point, and the smallest value counts. Version 2 (memory.max,
// memory.high, cpu.max) and version 1 (memory.limit_in_bytes, cpu.cfs_quota_us) may be mounted at the same time. A
// missing or unreadable file, or a file without a number, sets no limit. Any thread may call this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vllm::kernels {

// The files to read. Only tests change them.
struct CgroupPaths {
  std::string memberships = "/proc/self/cgroup";  // the groups of this process
  std::string mounts = "/proc/self/mountinfo";    // where the hierarchies are mounted
  std::string root;                               // prefix of every mount point
};

struct CgroupLimits {
  // Limit - usage + reclaimable page cache, in bytes, of the tightest group; and the file that contains its limit.
  std::optional<int64_t> available_memory_bytes;
  std::string memory_limit_file;
  // CPU time as a number of cores, rounded up: at least 1.
  std::optional<int64_t> num_cores;
};

CgroupLimits ReadCgroupLimits(const CgroupPaths& paths = {});

}  // namespace vllm::kernels
