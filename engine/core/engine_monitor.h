// EngineMonitor: watches and steers the running engines of a client from other threads. EngineCoreMonitor is that of
// one engine, and DataParallelMonitor that of several. Owned by the client; any thread, as long as the client exists.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/request/engine_snapshot.h"

namespace vllm {

class EngineMonitor {
 public:
  virtual ~EngineMonitor() = default;

  // Asks for a snapshot. Returns at once, and does nothing if one is already on its way. Once the engine has made it,
  // SnapshotFd() is readable until the next call.
  virtual void RequestSnapshot() = 0;
  // Returns the last snapshot; null before the first, or if there was no memory for it.
  virtual std::shared_ptr<const EngineSnapshot> Latest() = 0;
  virtual int SnapshotFd() const = 0;

  // While admission is paused, requests that have never run keep waiting. Requests that were admitted before finish,
  // also after a preemption. Draining the engine ends the pause.
  virtual void SetAdmissionPaused(bool paused) = 0;
  // Ends a request: the front end gets a final output with FinishReason::kAbort, as if the engine had ended it. Ignores
  // unknown ids. The id is that of a sequence (RequestSnapshot::request_id).
  virtual void AbortRequest(RequestId request_id) = 0;

  // The number of sequences that the front end holds until their grammars are compiled. The engine does not know them,
  // so its snapshots do not count them. Set by the front end.
  void SetNumHeldReqs(int64_t num_held_reqs) { num_held_reqs_.store(num_held_reqs, std::memory_order_relaxed); }
  int64_t num_held_reqs() const { return num_held_reqs_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> num_held_reqs_ = 0;
};

}  // namespace vllm
