#include "kernels/threading/cgroup_limits.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <vector>

namespace vllm::kernels {

namespace {

// Far more than the usual size of these files. Limits how much is read if a path is wrong.
constexpr size_t kMaxFileBytes = size_t{1} << 20;
// Version 1 reports "no limit" as the largest multiple of the page size that fits in an int64, which is above this.
constexpr int64_t kNoLimit = int64_t{1} << 62;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 4096> part;
  while (text.size() < kMaxFileBytes && (file.read(part.data(), part.size()), file.gcount() > 0)) {
    text.append(part.data(), static_cast<size_t>(file.gcount()));
  }
  return text;
}

// Parses a string of decimal digits. A value that is too large becomes the largest int64. Returns nothing for any other
// string.
std::optional<int64_t> ParseNumber(std::string_view word) {
  if (word.empty()) return std::nullopt;
  int64_t value = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return std::nullopt;
    if (__builtin_mul_overflow(value, int64_t{10}, &value) || __builtin_add_overflow(value, int64_t{c - '0'}, &value)) {
      value = std::numeric_limits<int64_t>::max();
    }
  }
  return value;
}

std::vector<std::string> SplitWords(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  std::string word;
  while (stream >> word) words.push_back(word);
  return words;
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  const std::vector<std::string> words = SplitWords(ReadFile(path));
  return words.size() == 1 ? ParseNumber(words[0]) : std::nullopt;
}

// Returns the value of `key` in a file of lines "KEY VALUE".
std::optional<int64_t> ReadField(const std::string& path, std::string_view key) {
  std::istringstream lines(ReadFile(path));
  std::string line;
  while (std::getline(lines, line)) {
    const std::vector<std::string> words = SplitWords(line);
    if (words.size() == 2 && words[0] == key) return ParseNumber(words[1]);
  }
  return std::nullopt;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  std::string part;
  while (std::getline(stream, part, separator)) parts.push_back(part);
  return parts;
}

bool Contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Decodes the octal escapes, such as \040, that mountinfo uses for space, tab, newline and backslash.
std::string Unescape(const std::string& text) {
  std::string result;
  const auto octal = [&](size_t i) { return text[i] >= '0' && text[i] <= '7'; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// A mounted hierarchy. Directory `point` is group `root` of the hierarchy.
struct Mount {
  std::string root;
  std::string point;
  bool is_v2 = false;
  std::vector<std::string> controllers;  // version 1 only
};

// "36 25 0:31 ROOT POINT OPTIONS [TAG...] - TYPE SOURCE SUPER_OPTIONS", one mount per line (proc_pid_mountinfo(5)).
std::vector<Mount> ReadMounts(const CgroupPaths& paths) {
  std::vector<Mount> mounts;
  std::istringstream lines(ReadFile(paths.mounts));
  std::string line;
  while (std::getline(lines, line)) {
    const std::vector<std::string> words = SplitWords(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (dash - words.begin() < 6 || words.end() - dash < 4) continue;
    const bool is_v2 = dash[1] == "cgroup2";
    if (!is_v2 && dash[1] != "cgroup") continue;
    mounts.push_back({Unescape(words[3]), paths.root + Unescape(words[4]), is_v2, Split(dash[3], ',')});
  }
  return mounts;
}

// "ID:CONTROLLERS:PATH", one hierarchy per line; version 2 has id 0 and no controllers (cgroups(7)).
struct Membership {
  std::vector<std::string> controllers;
  std::string path;
  bool is_v2 = false;
};

std::vector<Membership> ReadMemberships(const CgroupPaths& paths) {
  std::vector<Membership> memberships;
  std::istringstream lines(ReadFile(paths.memberships));
  std::string line;
  while (std::getline(lines, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    memberships.push_back(
        {Split(controllers, ','), line.substr(second + 1), line.starts_with("0:") && controllers.empty()});
  }
  return memberships;
}

// Returns the group's path below the mount point ("" or "/a/b"), or nothing if the mount does not contain the group.
std::optional<std::string> PathBelowMount(const Mount& mount, const std::string& path) {
  std::string below = path;
  if (mount.root != "/") {
    if (!path.starts_with(mount.root)) return std::nullopt;
    below = path.substr(mount.root.size());
    if (!below.empty() && below[0] != '/') return std::nullopt;
  }
  if (Contains(Split(below, '/'), "..")) return std::nullopt;
  while (!below.empty() && below.back() == '/') below.pop_back();
  return below;
}

// Returns the directories of this process's group and of its ancestors, in the version 2 hierarchy or in the version 1
// hierarchy of `controller`. A container often cannot see its group, because the path is that of the host or leaves the
// namespace through "..". In that case the mount points are returned.
std::vector<std::string> FindGroups(const std::vector<Mount>& mounts, const std::vector<Membership>& memberships,
                                    bool is_v2, std::string_view controller) {
  std::string path = "/";
  for (const Membership& membership : memberships) {
    if (membership.is_v2 == is_v2 && (is_v2 || Contains(membership.controllers, controller))) path = membership.path;
  }
  std::vector<std::string> groups, mount_points;
  for (const Mount& mount : mounts) {
    if (mount.is_v2 != is_v2 || (!is_v2 && !Contains(mount.controllers, controller))) continue;
    mount_points.push_back(mount.point);
    std::optional<std::string> below = PathBelowMount(mount, path);
    if (!below) continue;
    for (; !below->empty(); below->resize(below->rfind('/'))) groups.push_back(mount.point + *below);
    groups.push_back(mount.point);
  }
  return groups.empty() ? mount_points : groups;
}

class CgroupReader {
 public:
  void MemoryV2(const std::vector<std::string>& groups) {
    for (const std::string& group : groups) {
      // memory.high counts as a limit, because above it the kernel throttles the group and reclaims its pages.
      for (const char* limit : {"/memory.max", "/memory.high"}) {
        Memory(group + limit, ReadNumber(group + limit), group + "/memory.current", group + "/memory.stat",
               "inactive_file");
      }
    }
  }

  void MemoryV1(const std::vector<std::string>& groups) {
    for (const std::string& group : groups) {
      const std::string usage = group + "/memory.usage_in_bytes", stat = group + "/memory.stat";
      const std::string limit = group + "/memory.limit_in_bytes";
      Memory(limit, ReadNumber(limit), usage, stat, "total_inactive_file");
      // hierarchical_memory_limit is the minimum over the group and all its ancestors, including those that a container
      // cannot see.
      Memory(stat, ReadField(stat, "hierarchical_memory_limit"), usage, stat, "total_inactive_file");
    }
  }

  void CoresV2(const std::vector<std::string>& groups) {
    for (const std::string& group : groups) {
      const std::vector<std::string> words = SplitWords(ReadFile(group + "/cpu.max"));
      if (words.size() == 2) Cores(ParseNumber(words[0]), ParseNumber(words[1]));
    }
  }

  void CoresV1(const std::vector<std::string>& groups) {
    for (const std::string& group : groups) {
      Cores(ReadNumber(group + "/cpu.cfs_quota_us"), ReadNumber(group + "/cpu.cfs_period_us"));
    }
  }

  const CgroupLimits& limits() const { return limits_; }

 private:
  void Memory(const std::string& file, std::optional<int64_t> limit, const std::string& usage_file,
              const std::string& stat_file, std::string_view cache_key) {
    if (!limit || *limit >= kNoLimit) return;
    const int64_t usage = ReadNumber(usage_file).value_or(0);
    // Inactive page cache counts as usage but is reclaimable. The two numbers are read one after the other, so the
    // cache may appear larger than the usage.
    const int64_t cache = std::min(usage, ReadField(stat_file, cache_key).value_or(0));
    const int64_t available = std::max<int64_t>(0, *limit - (usage - cache));
    if (limits_.available_memory_bytes && *limits_.available_memory_bytes <= available) return;
    limits_.available_memory_bytes = available;
    limits_.memory_limit_file = file;
  }

  void Cores(std::optional<int64_t> quota, std::optional<int64_t> period) {
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    const int64_t cores = (*quota - 1) / *period + 1;
    limits_.num_cores = std::min(cores, limits_.num_cores.value_or(cores));
  }

  CgroupLimits limits_;
};

}  // namespace

CgroupLimits ReadCgroupLimits(const CgroupPaths& paths) {
  const std::vector<Mount> mounts = ReadMounts(paths);
  const std::vector<Membership> memberships = ReadMemberships(paths);
  CgroupReader reader;
  reader.MemoryV2(FindGroups(mounts, memberships, true, ""));
  reader.MemoryV1(FindGroups(mounts, memberships, false, "memory"));
  reader.CoresV2(FindGroups(mounts, memberships, true, ""));
  reader.CoresV1(FindGroups(mounts, memberships, false, "cpu"));
  return reader.limits();
}

}  // namespace vllm::kernels
