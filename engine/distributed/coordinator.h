// Coordinator: rank 0's view of a distributed job. It gathers the ranks, waits until each has loaded its model, and
// makes a client that runs requests on all of them. Owned by the batch command, and outlives the client; members on its
// thread only.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/engine_core_client.h"
#include "engine/data_parallel/data_parallel_client.h"
#include "engine/distributed/remote_engine_client.h"
#include "engine/distributed/transport.h"
#include "engine/distributed/wire.h"
#include "engine/threading/thread_annotations.h"

namespace vllm {

class Coordinator final : private Transport::Receiver {
 public:
  // Joins the job. Throws what the factory throws. REQUIRES: the link's rank is 0.
  explicit Coordinator(Transport::LinkFactory make_link, const Transport::Options& options = {});
  // Ends the job: tells every rank to stop.
  ~Coordinator() override;

  int size() const { return transport_.size(); }
  // Returns the name of a rank for messages, such as "rank 3 (node7)".
  std::string NameOf(int rank) const;

  // Waits until every rank has described its host, tells every rank its place, and returns that of this one. `own`
  // describes this host. Throws ResourceError if a rank has failed.
  PlaceMessage PlaceRanks(const HostMessage& own);
  // Returns warnings about how the launcher has placed the ranks.
  std::vector<std::string> PlacementWarnings() const;

  // Waits until every rank is ready, and returns what it has said; hellos[0] is empty. If a rank cannot load the model,
  // throws an exception of the same type. Throws ResourceError if a rank has failed.
  const std::vector<HelloMessage>& WaitForRanks();

  // Returns a client that runs requests on this process's engine and those of all ranks. The death of a rank does not
  // end it. REQUIRES: WaitForRanks has returned; called once.
  std::unique_ptr<DataParallelClient> MakeClient(const VllmConfig& config, std::unique_ptr<EngineCoreClient> own);

 private:
  // What a rank has sent before it became ready.
  struct Rank {
    std::optional<HostMessage> host;
    std::optional<HelloMessage> hello;
    std::optional<FailedMessage> failed;
    std::optional<std::string> lost;           // why the connection has ended
    std::shared_ptr<RemoteEngineInbox> inbox;  // receives all further messages
  };

  void OnMessage(int from, std::string_view message) override EXCLUDES(mutex_);
  void OnFailure(int rank, const std::string& cause) override EXCLUDES(mutex_);
  // Throws if a rank has failed.
  void ThrowIfFailed() const REQUIRES(mutex_);
  std::string Name(int rank) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Rank> ranks_ GUARDED_BY(mutex_);  // [size]; grows with the first message of a rank
  std::vector<HostMessage> hosts_;              // [size]
  std::vector<HelloMessage> hellos_;            // [size]
  Transport transport_;  // the last member, so that its thread ends before the others are destroyed
};

}  // namespace vllm
