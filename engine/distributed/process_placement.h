// Divides a machine among the processes of a distributed job that run on it. Rank 0 compares the CPUs that the
// processes may use; each process then takes its share. Pure functions, except BindThisThread; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/distributed/wire.h"
#include "kernels/threading/cpu_topology.h"

namespace vllm {

// Returns what this process tells rank 0. `binds_cpus`: see LaunchInfo.
HostMessage DescribeHost(bool binds_cpus);

// Returns the place of each rank. Processes with the same host name are on the same machine. Processes that the
// launcher has bound to different CPUs keep them; those with the same CPUs share them.
std::vector<PlaceMessage> PlaceProcesses(std::span<const HostMessage> hosts);

// Returns a warning for each machine most of whose CPUs no process may use, because the launcher has bound them to few.
std::vector<std::string> BindingWarnings(std::span<const HostMessage> hosts);

// Returns the CPUs of this process: a share of the usable ones, whole cores where possible. Empty: all of them.
std::vector<int> ShareOfCpus(const kernels::CpuTopology& topology, const std::vector<int>& usable,
                             const PlaceMessage& place);

// Lets the calling thread, and those that it starts, use only these CPUs. Does nothing if `cpus` is empty or the OS
// rejects it.
void BindThisThread(std::span<const int> cpus);

}  // namespace vllm
