// StepInterrupt: decides whether the step under way is worth finishing, while other threads ask for an end. Owned by a
// client. The engine's thread calls BeginStep, EndStep and TakenIn; the front end's thread calls Abort and Shutdown;
// the threads that compute read flag().
//
// A step is cut short at once when the engine shuts down or when every request in it is to be aborted. When only some
// of its requests are to be aborted, and the caller waits for that, it is cut short once they have waited
// kMaxAbortDelay; the step after such a cut runs to its end, so that other requests always make progress.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/thread_annotations.h"
#include "engine/request/engine_core_request.h"
#include "engine/sched/scheduler_output.h"
#include "kernels/threading/cancellation.h"

namespace vllm {

// How soon an abort takes effect on a step that also works for other requests.
enum class AbortUrgency : uint8_t {
  kAfterStep,  // the step is finished first: the front end found a stop string
  kPrompt,     // within StepInterrupt::kMaxAbortDelay: somebody waits
};

class StepInterrupt {
 public:
  static constexpr std::chrono::milliseconds kMaxAbortDelay{300};

  const CancellationFlag& flag() const { return flag_; }

  // The engine is about to work on these requests.
  void BeginStep(std::span<const NumScheduledTokens> scheduled) EXCLUDES(mutex_);
  // The step is over; `cancelled`: it was cut short.
  void EndStep(bool cancelled) EXCLUDES(mutex_);
  // The engine knows of the abort of these requests: they are in no later step.
  void TakenIn(std::span<const RequestId> aborted) EXCLUDES(mutex_);

  // These requests are to be aborted. Call it before the message that tells the engine.
  void Abort(std::span<const RequestId> request_ids, AbortUrgency urgency) EXCLUDES(mutex_);
  // No step is worth finishing from now on.
  void Shutdown() EXCLUDES(mutex_);

 private:
  struct PendingAbort {
    RequestId request_id;
    AbortUrgency urgency;
    std::chrono::steady_clock::time_point deadline;
  };

  // Sets the flag as the rules above say.
  void Decide() REQUIRES(mutex_);
  // Whether every request of the step is to be aborted.
  bool AllAborted() const REQUIRES(mutex_);

  CancellationFlag flag_;
  Mutex mutex_;
  std::vector<PendingAbort> pending_ GUARDED_BY(mutex_);
  std::vector<RequestId> in_step_ GUARDED_BY(mutex_);  // empty between steps
  // The last step was cut short though some of its requests go on.
  bool others_were_cut_ GUARDED_BY(mutex_) = false;
  bool shutdown_ GUARDED_BY(mutex_) = false;
};

}  // namespace vllm
