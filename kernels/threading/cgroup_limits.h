// The memory and the CPU time that this process's control groups still allow. The only reader of control-group files.
//
// A limit may be set on the process's own group or on any parent (a systemd slice, a pod, a container), so every group
// from the process's own up to the mount point is read, and the smallest value counts. Version 2 (memory.max,
// memory.high, cpu.max) and version 1 (memory.limit_in_bytes, cpu.cfs_quota_us) may be mounted side by side. A
// missing or unreadable file, or one without a number, sets no limit. Any thread may call this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vllm {

// Where the files are. Only tests use other values than these.
struct CgroupPaths {
  std::string memberships = "/proc/self/cgroup";  // the groups of this process
  std::string mounts = "/proc/self/mountinfo";    // where the hierarchies are mounted
  std::string root;                               // prefix of every mount point
};

struct CgroupLimits {
  // Bytes: limit - usage + page cache that gives way, at the tightest group, and the file that holds its limit.
  std::optional<int64_t> available_memory_bytes;
  std::string memory_limit_file;
  // CPU time as whole cores, rounded up: at least 1.
  std::optional<int64_t> num_cores;
};

CgroupLimits ReadCgroupLimits(const CgroupPaths& paths = {});

}  // namespace vllm
