// Requests of the Scheduler that sample no token.
#include "engine/sched/scheduler.h"

namespace vllm {

bool Scheduler::EndsEncoderStep(const Request& request, int64_t num_new_tokens, int64_t token_budget) const {
  // Only encoders compute vectors without chunked prefill, unless a flag turns it off.
  if (!request.is_pooling() || config_.enable_chunked_prefill || scheduled_.empty()) return false;
  return config_.max_num_batched_tokens - token_budget + num_new_tokens > kEncoderStepTokens;
}

void Scheduler::FinishPooling(RequestId id, const std::vector<float>& pooled, EngineCoreOutputs& outputs) {
  Request* request = Find(id);
  if (request == nullptr || request->status != RequestStatus::kRunning) return;
  request->status = RequestStatus::kFinishedStopped;
  request->first_token_time = request->last_token_time = now_;
  AddOutput(*request, 0, nullptr, outputs).pooled = pooled;
  Release(*request);
}

}  // namespace vllm
