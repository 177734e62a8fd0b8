#include "kernels/threading/cpu_topology.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace vllm::kernels {

namespace {

constexpr int kMaxCpu = 1 << 16;

// Parses a list such as "0-3,8,10-11". Ignores the rest of the string from the first syntax error on.
std::vector<int> ParseCpuList(const std::string& text) {
  std::vector<int> cpus;
  size_t pos = 0;
  const auto number = [&]() -> std::optional<int> {
    int value = 0;
    const size_t begin = pos;
    while (pos < text.size() && text[pos] >= '0' && text[pos] <= '9' && value < kMaxCpu)
      value = value * 10 + (text[pos++] - '0');
    if (pos == begin || value >= kMaxCpu) return std::nullopt;
    return value;
  };
  for (;; ++pos) {
    const std::optional<int> first = number();
    if (!first) return cpus;
    std::optional<int> last = first;
    if (pos < text.size() && text[pos] == '-') {
      ++pos;
      last = number();
      if (!last) return cpus;
    }
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (pos >= text.size() || text[pos] != ',') return cpus;
  }
}

std::string FirstLine(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the NUMA node of each CPU that appears in a node's list.
std::map<int, int> ReadNodes(const std::filesystem::path& root) {
  std::map<int, int> nodes;
  for (const int node : ParseCpuList(FirstLine(root / "node" / "online"))) {
    for (const int cpu : ParseCpuList(FirstLine(root / "node" / ("node" + std::to_string(node)) / "cpulist"))) {
      nodes[cpu] = node;
    }
  }
  return nodes;
}

}  // namespace

CpuTopology::CpuTopology(const std::vector<int>& usable, const std::string& root, const CgroupPaths& cgroups)
    : quota_cores_(ReadCgroupLimits(cgroups).num_cores.value_or(std::numeric_limits<int64_t>::max())) {
  const std::map<int, int> nodes = ReadNodes(root);
  std::map<int, int> cpus_of_core;
  for (const int cpu : std::set<int>(usable.begin(), usable.end())) {
    const std::filesystem::path directory =
        std::filesystem::path(root) / "cpu" / ("cpu" + std::to_string(cpu)) / "topology";
    int core = cpu;
    for (const int other : ParseCpuList(FirstLine(directory / "thread_siblings_list"))) {
      if (std::find(usable.begin(), usable.end(), other) != usable.end()) core = std::min(core, other);
    }
    const auto node = nodes.find(cpu);
    cpus_.push_back({cpu, cpus_of_core[core]++, node == nodes.end() ? 0 : node->second});
  }
}

int64_t CpuTopology::num_cores() const {
  const int64_t cores = std::count_if(cpus_.begin(), cpus_.end(), [](const Cpu& cpu) { return cpu.sibling == 0; });
  return std::clamp<int64_t>(cores, 1, std::max<int64_t>(1, quota_cores_));
}

int64_t CpuTopology::num_threads_at_once() const {
  return std::clamp<int64_t>(num_cpus(), 1, std::max<int64_t>(1, quota_cores_));
}

int64_t CpuTopology::num_nodes() const {
  std::set<int> nodes;
  for (const Cpu& cpu : cpus_) nodes.insert(cpu.node);
  return std::max<int64_t>(1, static_cast<int64_t>(nodes.size()));
}

int CpuTopology::NodeOf(int cpu) const {
  for (const Cpu& known : cpus_) {
    if (known.id == cpu) return known.node;
  }
  return 0;
}

std::vector<std::vector<int>> CpuTopology::Place(int64_t num_ranks, int64_t threads_per_rank) const {
  if (num_ranks * threads_per_rank > num_cpus()) return {};
  std::vector<Cpu> free = cpus_;
  std::stable_sort(free.begin(), free.end(), [](const Cpu& a, const Cpu& b) { return a.sibling < b.sibling; });
  std::set<int> nodes;
  for (const Cpu& cpu : cpus_) nodes.insert(cpu.node);
  const std::vector<int> node_ids(nodes.begin(), nodes.end());
  const auto num_nodes = static_cast<int64_t>(node_ids.size());

  std::vector<std::vector<int>> ranks;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    // Ranks are spread over the NUMA nodes. If a rank's node has too few free cores, the rank gets the next node that
    // has enough.
    const int64_t preferred = rank * num_nodes / num_ranks;
    int node = -1;
    for (int64_t i = 0; i < num_nodes && node < 0; ++i) {
      const int candidate = node_ids[static_cast<size_t>((preferred + i) % num_nodes)];
      const int64_t cores = std::count_if(free.begin(), free.end(),
                                          [&](const Cpu& cpu) { return cpu.node == candidate && cpu.sibling == 0; });
      if (cores >= threads_per_rank) node = candidate;
    }
    // The node's CPUs come first. Among them, and among the other CPUs, the order by sibling remains.
    std::vector<Cpu> order = free;
    if (node >= 0)
      std::stable_partition(order.begin(), order.end(), [node](const Cpu& cpu) { return cpu.node == node; });
    std::vector<int>& cpus = ranks.emplace_back();
    for (int64_t thread = 0; thread < threads_per_rank; ++thread) cpus.push_back(order[static_cast<size_t>(thread)].id);
    std::erase_if(free, [&](const Cpu& cpu) { return std::find(cpus.begin(), cpus.end(), cpu.id) != cpus.end(); });
  }
  return ranks;
}

}  // namespace vllm::kernels
