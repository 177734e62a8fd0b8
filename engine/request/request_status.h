// RequestStatus: the state of a request in the scheduler, a subset of vLLM's states, and its conversion from and to
// FinishReason. A plain value; any thread.
#pragma once

#include <cstdint>

#include "engine/request/finish_reason.h"

namespace vllm {

// IsFinished relies on the order: finished states come after kPreempted.
enum class RequestStatus : uint8_t {
  kWaiting,
  kRunning,
  kWaitingForRemoteKVs,  // waits without blocks until its KV is loaded from a store
  kPreempted,
  kFinishedStopped,
  kFinishedLengthCapped,
  kFinishedAborted,
  kFinishedError,
};

constexpr bool IsFinished(RequestStatus status) { return status > RequestStatus::kPreempted; }

constexpr FinishReason ToFinishReason(RequestStatus status) {
  switch (status) {
    case RequestStatus::kFinishedStopped:
      return FinishReason::kStop;
    case RequestStatus::kFinishedLengthCapped:
      return FinishReason::kLength;
    case RequestStatus::kFinishedAborted:
      return FinishReason::kAbort;
    case RequestStatus::kFinishedError:
      return FinishReason::kError;
    default:
      return FinishReason::kNone;
  }
}

// REQUIRES: reason is not kNone.
constexpr RequestStatus ToFinishedStatus(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return RequestStatus::kFinishedStopped;
    case FinishReason::kLength:
      return RequestStatus::kFinishedLengthCapped;
    case FinishReason::kAbort:
      return RequestStatus::kFinishedAborted;
    default:
      return RequestStatus::kFinishedError;
  }
}

}  // namespace vllm
