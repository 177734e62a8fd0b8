// StepInterrupt: decides whether the current step is worth finishing. Owned by ThreadClient. The engine thread calls
// BeginStep, EndStep and the functions that begin with TakenIn. The front-end thread calls Abort, ArriveInteractive and
// Shutdown; other threads call Abort through EngineCoreMonitor. The threads that compute read flag().
//
// A step stops early if the engine shuts down, if all of its requests are being aborted, or if an interactive request
// arrives and the step has none. If only some requests are being aborted and a caller waits for the abort, the step
// stops kMaxAbortDelay after the abort. The following step is not stopped for that reason, so that the other requests
// make progress.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/engine_core_request.h"
#include "engine/sched/scheduler_output.h"
#include "engine/threading/thread_annotations.h"
#include "kernels/threading/cancellation.h"

namespace vllm {

// How soon an abort takes effect on a step that also runs other requests.
enum class AbortUrgency : uint8_t {
  kAfterStep,  // after the step; the front end found a stop string, so no caller waits
  kPrompt,     // a caller waits, so the step stops after kMaxAbortDelay, unless the step before it was stopped this way
};

class StepInterrupt {
 public:
  static constexpr std::chrono::milliseconds kMaxAbortDelay{300};

  const kernels::CancellationFlag& flag() const { return flag_; }

  // Call this when the engine starts a step with these requests.
  void BeginStep(std::span<const NumScheduledTokens> scheduled, bool has_interactive_request = false) EXCLUDES(mutex_);
  // Call this when the step has ended. `cancelled`: the step was cut short.
  void EndStep(bool cancelled) EXCLUDES(mutex_);
  // Call this when the engine has processed the abort of these requests, so that no later step contains them.
  void TakenIn(std::span<const RequestId> aborted) EXCLUDES(mutex_);

  // Starts the abort of these requests. Call this before the abort message to the engine is queued.
  void Abort(std::span<const RequestId> request_ids, AbortUrgency urgency) EXCLUDES(mutex_);
  // Announces an interactive request. Call this before the request is queued for the engine.
  void ArriveInteractive(RequestId request_id) EXCLUDES(mutex_);
  // Call this when the engine has received the interactive request.
  void TakenInInteractive(RequestId request_id) EXCLUDES(mutex_);
  // Stops the current step and every later one.
  void Shutdown() EXCLUDES(mutex_);

 private:
  struct PendingAbort {
    RequestId request_id;
    AbortUrgency urgency;
    std::chrono::steady_clock::time_point deadline;
  };

  // Sets the flag according to the rules above.
  void Decide() REQUIRES(mutex_);
  // Returns true if every request of the step is being aborted.
  bool AllAborted() const REQUIRES(mutex_);

  kernels::CancellationFlag flag_;
  Mutex mutex_;
  std::vector<PendingAbort> pending_ GUARDED_BY(mutex_);
  std::vector<RequestId> in_step_ GUARDED_BY(mutex_);  // empty between steps
  bool step_has_interactive_ GUARDED_BY(mutex_) = false;
  std::vector<RequestId> arriving_ GUARDED_BY(mutex_);  // interactive requests that the engine has not received
  // The last step was cut short although some of its requests continue.
  bool others_were_cut_ GUARDED_BY(mutex_) = false;
  bool shutdown_ GUARDED_BY(mutex_) = false;
};

}  // namespace vllm
