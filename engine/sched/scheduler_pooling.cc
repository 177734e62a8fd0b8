// Requests of the Scheduler that sample no token.
#include "engine/sched/scheduler.h"

namespace vllm {

void Scheduler::FinishPooling(RequestId id, const std::vector<float>& pooled, EngineCoreOutputs& outputs) {
  Request* request = Find(id);
  if (request == nullptr || request->status != RequestStatus::kRunning) return;
  request->status = RequestStatus::kFinishedStopped;
  request->first_token_time = request->last_token_time = now_;
  AddOutput(*request, 0, nullptr, outputs).pooled = pooled;
  Release(*request);
}

}  // namespace vllm
