#include "kernels/threading/available_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>

namespace vllm::kernels {

namespace {

// Returns the value of the line "KEY: N kB" in /proc/meminfo or /proc/PID/status, in bytes.
std::optional<int64_t> ReadKibibytes(const std::string& path, const std::string& key) {
  constexpr int64_t kMaxKibibytes = std::numeric_limits<int64_t>::max() / 1024;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    const size_t begin = line.find_first_of("0123456789", key.size());
    if (begin == std::string::npos) return std::nullopt;
    int64_t value = 0;
    for (size_t i = begin; i < line.size() && line[i] >= '0' && line[i] <= '9'; ++i) {
      if (value > kMaxKibibytes / 10 - 1) return std::nullopt;
      value = value * 10 + (line[i] - '0');
    }
    return value * 1024;
  }
  return std::nullopt;
}

std::optional<int64_t> Remaining(std::optional<int64_t> limit, std::optional<int64_t> used) {
  if (!limit) return std::nullopt;
  return std::max<int64_t>(0, *limit - used.value_or(0));
}

std::optional<int64_t> SoftLimit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<int64_t>::max()));
}

}  // namespace

AvailableMemory LeastOf(const MemoryLeft& left, int64_t untouched_bytes) {
  AvailableMemory least;
  const auto consider = [&least](std::optional<int64_t> bytes, int64_t needed, const std::string& bound) {
    if (!bytes) return;
    const int64_t available = std::max<int64_t>(0, *bytes - needed);
    if (available < least.bytes) least = {available, bound};
  };
  consider(left.machine, untouched_bytes, "MemAvailable");
  consider(left.cgroup, untouched_bytes, left.cgroup_file);
  consider(left.address_space, 0, "RLIMIT_AS (ulimit -v)");
  consider(left.data, 0, "RLIMIT_DATA (ulimit -d)");
  consider(left.commit, 0, "CommitLimit (vm.overcommit_memory 2)");
  return least;
}

MemoryLeft ReadMemoryLeft(const MemoryPaths& paths, std::optional<int64_t> address_space_limit,
                          std::optional<int64_t> data_limit) {
  const std::string meminfo = paths.proc + "/meminfo", status = paths.proc + "/self/status";
  MemoryLeft left;
  left.machine = ReadKibibytes(meminfo, "MemAvailable:");
  const CgroupLimits cgroup = ReadCgroupLimits(paths.cgroups);
  left.cgroup = cgroup.available_memory_bytes;
  left.cgroup_file = cgroup.memory_limit_file;
  left.address_space = Remaining(address_space_limit, ReadKibibytes(status, "VmSize:"));
  left.data = Remaining(data_limit, ReadKibibytes(status, "VmData:"));
  // In mode 2 the kernel rejects mappings beyond the commit limit, even with MAP_NORESERVE and before they are
  // written.
  char mode = 0;
  std::ifstream(paths.proc + "/sys/vm/overcommit_memory").get(mode);
  if (mode == '2')
    left.commit = Remaining(ReadKibibytes(meminfo, "CommitLimit:"), ReadKibibytes(meminfo, "Committed_AS:"));
  return left;
}

bool AddressSpaceIsLimited() { return SoftLimit(RLIMIT_AS).has_value(); }

AvailableMemory ReadAvailableMemory(int64_t untouched_bytes) {
  return LeastOf(ReadMemoryLeft({}, SoftLimit(RLIMIT_AS), SoftLimit(RLIMIT_DATA)), untouched_bytes);
}

}  // namespace vllm::kernels
