#include "engine/distributed/process_placement.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "engine/config/escape.h"
#include "kernels/threading/thread_pool.h"

namespace vllm {

HostMessage DescribeHost(bool binds_cpus) {
  HostMessage host;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) host.name = name.data();
  const std::vector<int> cpus = kernels::UsableCpus();
  host.cpus.assign(cpus.begin(), cpus.end());
  if (binds_cpus) host.num_machine_cpus = sysconf(_SC_NPROCESSORS_ONLN);
  return host;
}

std::vector<PlaceMessage> PlaceProcesses(std::span<const HostMessage> hosts) {
  std::map<std::string, int64_t> num_on_machine;
  std::map<std::pair<std::string, std::vector<int32_t>>, int64_t> num_sharing;
  std::vector<PlaceMessage> places(hosts.size());
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    ++num_on_machine[hosts[rank].name];
    places[rank].share_index = num_sharing[{hosts[rank].name, hosts[rank].cpus}]++;
  }
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    places[rank].num_local_processes = num_on_machine[hosts[rank].name];
    places[rank].num_sharing = num_sharing[{hosts[rank].name, hosts[rank].cpus}];
  }
  return places;
}

std::vector<std::string> BindingWarnings(std::span<const HostMessage> hosts) {
  struct Machine {
    int64_t num_ranks = 0;
    int64_t num_cpus = 0;
    std::set<int32_t> used;
  };
  std::map<std::string, Machine> machines;
  for (const HostMessage& host : hosts) {
    Machine& machine = machines[host.name];
    ++machine.num_ranks;
    machine.num_cpus = std::max(machine.num_cpus, host.num_machine_cpus);
    machine.used.insert(host.cpus.begin(), host.cpus.end());
  }
  std::vector<std::string> warnings;
  for (const auto& [name, machine] : machines) {
    const auto num_used = static_cast<int64_t>(machine.used.size());
    if (2 * num_used >= machine.num_cpus) continue;
    warnings.push_back("mpirun has bound the " + std::to_string(machine.num_ranks) + " ranks on " + Escape(name) +
                       " to " + std::to_string(num_used) + " of its " + std::to_string(machine.num_cpus) +
                       " CPUs; mpirun --bind-to none lets them use all");
  }
  return warnings;
}

std::vector<int> ShareOfCpus(const kernels::CpuTopology& topology, const std::vector<int>& usable,
                             const PlaceMessage& place) {
  if (place.num_sharing <= 1 || place.share_index < 0 || place.share_index >= place.num_sharing) return {};
  const int64_t num_cores = std::max<int64_t>(1, topology.num_cores() / place.num_sharing);
  const std::vector<std::vector<int>> shares = topology.Place(place.num_sharing, num_cores);
  if (!shares.empty()) return shares[static_cast<size_t>(place.share_index)];
  // There are more processes than CPUs.
  return {usable[static_cast<size_t>(place.share_index) % usable.size()]};
}

void BindThisThread(std::span<const int> cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace vllm
