#include "engine/distributed/launcher.h"

#include <charconv>

namespace vllm {
namespace {

std::optional<int> NumberIn(const GetEnvironment& get_environment, const char* name) {
  const char* text = get_environment(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<LaunchInfo> DetectLaunch(const GetEnvironment& get_environment) {
  struct Launcher {
    const char* rank;
    const char* size;
    std::vector<std::string_view> libraries;
  };
  const std::vector<Launcher> launchers = {
      // mpirun of Open MPI
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"openmpi"}},
      // mpiexec of MPICH, and srun --mpi=pmi2
      {"PMI_RANK", "PMI_SIZE", {"mpich", "openmpi"}},
      // srun --mpi=pmix
      {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", {"openmpi", "mpich"}},
  };
  for (const Launcher& launcher : launchers) {
    const std::optional<int> rank = NumberIn(get_environment, launcher.rank);
    const std::optional<int> size = NumberIn(get_environment, launcher.size);
    if (!rank || !size || *rank >= *size) continue;
    if (*size < 2) return std::nullopt;
    LaunchInfo info{.rank = *rank, .size = *size, .libraries = launcher.libraries};
    info.binds_cpus = NumberIn(get_environment, "OMPI_MCA_orte_bound_at_launch") == 1;
    return info;
  }
  return std::nullopt;
}

}  // namespace vllm
