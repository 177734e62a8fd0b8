#include "app/batch/distributed/mpi_process.h"

#include <signal.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "engine/distributed/mpi/mpi_link.h"
#include "engine/distributed/process_placement.h"
#include "kernels/threading/thread_pool.h"

namespace vllm::app {

std::optional<LaunchInfo> LaunchOfThisProcess() {
  return DetectLaunch([](const char* name) { return std::getenv(name); });
}

Transport::LinkFactory LinkOf(const LaunchInfo& launch) {
  // The mpiexec of MPICH reports the death of a rank by this signal, which would end the process. MPICH's own handler
  // calls the one that it replaces, even if that is SIG_IGN, which crashes.
  signal(SIGUSR1, [](int) {});
  return [launch] { return std::make_unique<MpiLink>(launch); };
}

void TakePlace(const PlaceMessage& place) {
  const std::vector<int> usable = kernels::UsableCpus();
  BindThisThread(ShareOfCpus(kernels::CpuTopology(usable), usable, place));
}

}  // namespace vllm::app
