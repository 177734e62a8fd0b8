// DistributedBatch: a batch on all processes that MPI has started, as rank 0 sees it. Owned by the batch
// command, which creates it before everything that uses it; main thread.
#pragma once

#include <memory>
#include <string>

#include "app/cli/settings.h"
#include "app/model/load_model.h"
#include "engine/distributed/coordinator.h"
#include "engine/distributed/launcher.h"

namespace vllm::app {

class DistributedBatch {
 public:
  // Joins the job as rank 0. Throws ConfigError.
  explicit DistributedBatch(const LaunchInfo& launch);

  // Throws ConfigError if a setting makes no sense for several processes.
  static void CheckSettings(const Settings& settings);
  // Lets `options` load this rank's part of the engine, and extends its client to all ranks. Waits until every rank has
  // described its host. `identity`: see RankIdentity.
  void Extend(std::string identity, LoadOptions& options);
  // Returns the number of sequences that each rank has finished, for --stats. REQUIRES: the engine still exists.
  std::string StatsText() const;

 private:
  std::unique_ptr<EngineCoreClient> MakeClient(const std::string& identity, const VllmConfig& config,
                                               std::unique_ptr<EngineCoreClient> own);

  Coordinator coordinator_;
  bool binds_cpus_;
  const DataParallelClient* client_ = nullptr;  // owned by the engine
};

}  // namespace vllm::app
