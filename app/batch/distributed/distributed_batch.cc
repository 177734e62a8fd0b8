#include "app/batch/distributed/distributed_batch.h"

#include <utility>

#include "app/batch/distributed/mpi_process.h"
#include "app/batch/distributed/rank_identity.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/distributed/process_placement.h"

namespace vllm::app {

DistributedBatch::DistributedBatch(const LaunchInfo& launch)
    : coordinator_(LinkOf(launch)), binds_cpus_(launch.binds_cpus) {}

void DistributedBatch::CheckSettings(const Settings& settings) {
  const auto fail = [](const std::string& flag, const std::string& why) {
    throw ConfigError("--" + flag + ": cannot be used with several MPI processes, because " + why);
  };
  if (settings.Has("trace")) fail("trace", "a trace is that of one scheduler");
  if (settings.Switch("chat")) fail("chat", "a chat can load another model");
}

void DistributedBatch::Extend(std::string identity, LoadOptions& options) {
  const PlaceMessage place = coordinator_.PlaceRanks(DescribeHost(binds_cpus_));
  for (const std::string& warning : coordinator_.PlacementWarnings()) PrintWarning(warning);
  TakePlace(place);
  options.num_processes = coordinator_.size();
  options.num_local_processes = place.num_local_processes;
  options.extend_client = [this, identity = std::move(identity)](const VllmConfig& config,
                                                                 std::unique_ptr<EngineCoreClient> own) {
    return MakeClient(identity, config, std::move(own));
  };
}

std::unique_ptr<EngineCoreClient> DistributedBatch::MakeClient(const std::string& identity, const VllmConfig& config,
                                                               std::unique_ptr<EngineCoreClient> own) {
  const std::vector<HelloMessage>& hellos = coordinator_.WaitForRanks();
  for (int rank = 1; rank < coordinator_.size(); ++rank) {
    const HelloMessage& hello = hellos[static_cast<size_t>(rank)];
    if (const std::string mismatch = IdentityMismatch(identity, hello.identity); !mismatch.empty()) {
      throw ConfigError(coordinator_.NameOf(rank) + " would give other answers: " + Escape(mismatch, 2000),
                        "all ranks must use the same model, settings and instruction set (--isa)");
    }
    for (const std::string& warning : hello.warnings) PrintWarning(coordinator_.NameOf(rank) + ": " + warning);
  }
  std::unique_ptr<DataParallelClient> client = coordinator_.MakeClient(config, std::move(own));
  client_ = client.get();
  return client;
}

std::string DistributedBatch::StatsText() const {
  std::string text = "sequences finished: ";
  const char* separator = "";
  for (const DataParallelEngine& engine : client_->engines()) {
    text += separator + engine.name + " " + GroupedText(engine.num_finished);
    separator = ", ";
  }
  return text;
}

}  // namespace vllm::app
