// Tells from the environment whether an MPI launcher (mpirun, mpiexec, srun) has started this process together with
// others. Pure function of the environment; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

struct LaunchInfo {
  int rank = 0;
  int size = 1;
  // The MPI libraries that work with the launcher, best first: "openmpi", "mpich".
  std::vector<std::string_view> libraries;
  // True if the launcher says that it has bound the process to some CPUs.
  bool binds_cpus = false;
};

// Returns the value of an environment variable, or null.
using GetEnvironment = std::function<const char*(const char* name)>;

// Returns nullopt unless the process is one of at least two that a launcher has started for MPI. A batch script of
// Slurm has no such launcher, although SLURM_NTASKS is set; only `srun` with a PMI plugin counts.
std::optional<LaunchInfo> DetectLaunch(const GetEnvironment& get_environment);

}  // namespace vllm
