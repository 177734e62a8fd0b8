// The Scheduler's part that limits the LoRA adapters of running requests.
#include <algorithm>

#include "engine/sched/scheduler.h"

namespace vllm {

void Scheduler::FindRunningLoRAs() {
  running_loras_.clear();
  for (const Request* request : running_) AddRunningLoRA(*request);
}

void Scheduler::AddRunningLoRA(const Request& request) {
  const int32_t slot = request.core()->lora_slot;
  if (slot < 0 || std::find(running_loras_.begin(), running_loras_.end(), slot) != running_loras_.end()) return;
  running_loras_.push_back(slot);
}

bool Scheduler::HasRoomForLoRA(const Request& request) const {
  const int32_t slot = request.core()->lora_slot;
  return slot < 0 || static_cast<int64_t>(running_loras_.size()) < config_.max_loras ||
         std::find(running_loras_.begin(), running_loras_.end(), slot) != running_loras_.end();
}

bool Scheduler::SkipFirst() {
  // Without this limit, requests with the adapters in use could arrive forever and the skipped ones would never run.
  const int64_t max_overtaken = kMaxOvertakenPerSeq * config_.max_num_seqs;
  if (!skipped_.empty() && skipped_.front()->num_overtaken >= max_overtaken) return false;
  if (waiting_->Peek()->num_overtaken >= max_overtaken) return false;
  skipped_.push_back(waiting_->Pop());
  return true;
}

void Scheduler::RestoreSkipped() {
  for (; !skipped_.empty(); skipped_.pop_back()) waiting_->Prepend(skipped_.back());
}

}  // namespace vllm
