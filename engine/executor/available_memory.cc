#include "engine/executor/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace vllm {

namespace {

// The first number of the line of `path` that starts with `key`, or of the file when `key` is empty.
std::optional<int64_t> ReadNumber(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    if (!key.empty() && word != key) continue;
    int64_t value = 0;
    if (key.empty()) {
      if (word.empty() || word.find_first_not_of("0123456789") != std::string::npos || word.size() > 18)
        return std::nullopt;
      return std::stoll(word);
    }
    if (file >> value) return value;
    return std::nullopt;
  }
  return std::nullopt;
}

// This process' group in the unified hierarchy; its files lie directly below the mount in a container.
std::string CgroupFolder() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("0::", 0) == 0) return "/sys/fs/cgroup" + line.substr(3);
  }
  return "/sys/fs/cgroup";
}

}  // namespace

AvailableMemory ReadAvailableMemory() {
  AvailableMemory best{std::numeric_limits<int64_t>::max(), "nothing known"};
  const auto consider = [&best](int64_t bytes, const char* bound) {
    if (bytes < best.bytes) best = {std::max<int64_t>(bytes, 0), bound};
  };
  if (const auto kib = ReadNumber("/proc/meminfo", "MemAvailable:")) consider(*kib * 1024, "MemAvailable");

  for (const std::string& folder : {CgroupFolder(), std::string("/sys/fs/cgroup")}) {
    const auto limit = ReadNumber(folder + "/memory.max", "");
    const auto used = ReadNumber(folder + "/memory.current", "");
    // Page cache counts as used but gives way.
    const auto cached = ReadNumber(folder + "/memory.stat", "inactive_file");
    if (limit && used) consider(*limit - *used + cached.value_or(0), "cgroup memory.max");
  }

  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const int64_t pages = ReadNumber("/proc/self/statm", "").value_or(0);
    consider(static_cast<int64_t>(limit.rlim_cur) - pages * sysconf(_SC_PAGESIZE), "RLIMIT_AS");
  }
  return best;
}

}  // namespace vllm
