// The memory that this process's control groups still allow, and their CPU quota. No other file reads control-group
// files. Any thread may call this.
//
// A limit may be set on the process's group or on any ancestor (a systemd slice, a pod, a container). So
// ReadCgroupLimits reads every group from the process's own up to the mount point, and the tightest limit counts.
// Version 2 (memory.max, memory.high, cpu.max) and version 1 (memory.limit_in_bytes, cpu.cfs_quota_us) may be mounted
// at the same time. A missing or unreadable file, or a file without a number, sets no limit.
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
  // Limit - usage + reclaimable page cache of the tightest group, in bytes. Absent: no limit.
  std::optional<int64_t> available_memory_bytes;
  std::string memory_limit_file;  // the file that sets this limit
  // CPU quota as a number of cores, rounded up. Absent: no quota.
  std::optional<int64_t> num_cores;
};

CgroupLimits ReadCgroupLimits(const CgroupPaths& paths = {});

}  // namespace vllm::kernels
