// DistributedMonitor: the EngineMonitor of a distributed job. Its snapshots are those of rank 0's engine; pauses and
// aborts reach all ranks. Owned by DataParallelClient; any thread, as long as the client exists.
#pragma once

#include <memory>

#include "engine/core/engine_monitor.h"
#include "engine/distributed/transport.h"

namespace vllm {

class DistributedMonitor final : public EngineMonitor {
 public:
  // Borrows both.
  DistributedMonitor(EngineMonitor& own, Transport& transport) : own_(own), transport_(transport) {}

  void RequestSnapshot() override { own_.RequestSnapshot(); }
  std::shared_ptr<const EngineSnapshot> Latest() override { return own_.Latest(); }
  int SnapshotFd() const override { return own_.SnapshotFd(); }
  void SetAdmissionPaused(bool paused) override;
  void AbortRequest(RequestId request_id) override;

 private:
  EngineMonitor& own_;
  Transport& transport_;
};

}  // namespace vllm
