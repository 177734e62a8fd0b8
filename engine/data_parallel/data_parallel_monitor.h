// DataParallelMonitor: the EngineMonitor of all data-parallel engines of a process. Viewers see them as one engine.
// Owned by DataParallelClient; any thread, as long as the client exists.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/core/engine_core_monitor.h"
#include "engine/threading/event_fd.h"
#include "engine/threading/thread_annotations.h"

namespace vllm {

class DataParallelMonitor final : public EngineMonitor {
 public:
  // Borrows the monitors, of which there must be at least one. They must be new, and nobody else may use them.
  explicit DataParallelMonitor(std::vector<EngineCoreMonitor*> engines);

  // The snapshot is there once every engine has made its own. An engine that has died makes none.
  void RequestSnapshot() override EXCLUDES(mutex_);
  std::shared_ptr<const EngineSnapshot> Latest() override EXCLUDES(mutex_);
  int SnapshotFd() const override { return event_fd_.fd(); }
  // The functions below tell every engine.
  void SetAdmissionPaused(bool paused) override;
  void AbortRequest(RequestId request_id) override;

 private:
  // Called by an engine thread when its engine has made a snapshot.
  void OnPublish() EXCLUDES(mutex_);

  const std::vector<EngineCoreMonitor*> engines_;
  EventFd event_fd_;
  Mutex mutex_;
  size_t num_pending_ GUARDED_BY(mutex_) = 0;  // engines that have not made the requested snapshot yet
  bool has_new_ GUARDED_BY(mutex_) = false;    // latest_ is older than the snapshots of the engines
  std::shared_ptr<const EngineSnapshot> latest_ GUARDED_BY(mutex_);
};

}  // namespace vllm
