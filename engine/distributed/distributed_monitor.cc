#include "engine/distributed/distributed_monitor.h"

#include "engine/distributed/wire.h"

namespace vllm {

void DistributedMonitor::SetAdmissionPaused(bool paused) {
  own_.SetAdmissionPaused(paused);
  for (int rank = 1; rank < transport_.size(); ++rank) {
    transport_.Send(rank, EncodeFlag(MessageType::kPause, paused));
  }
}

void DistributedMonitor::AbortRequest(RequestId request_id) {
  own_.AbortRequest(request_id);
  for (int rank = 1; rank < transport_.size(); ++rank) transport_.Send(rank, EncodeAbortWithOutput(request_id));
}

}  // namespace vllm
