// The Scheduler's check of its invariants, for tests.
#include <algorithm>
#include <string>

#include "engine/sched/scheduler.h"

namespace vllm {

std::string Scheduler::CheckLoRAs() const {
  std::vector<int32_t> slots;
  for (const Request* request : running_) {
    const int32_t slot = request->core()->lora_slot;
    if (slot >= 0 && std::find(slots.begin(), slots.end(), slot) == slots.end()) slots.push_back(slot);
  }
  if (static_cast<int64_t>(slots.size()) > config_.max_loras) return "running requests use too many adapters";
  return skipped_.empty() ? "" : "a skipped request is not in the waiting queue";
}

std::string Scheduler::CheckIntegrity() const {
  std::string error = kv_cache_.CheckIntegrity();
  if (!error.empty()) return error;
  if (num_running() + NumReservedSeqs() > config_.max_num_seqs) return "running: more than max_num_seqs";
  if (running_.size() + waiting_->size() + loading_.size() != requests_.size()) {
    return "requests: not all are running, waiting or loading";
  }
  if (kv_cache_.num_tables() != num_running()) return "block tables: not one per running request";
  for (const Request* request : running_) {
    const std::string name = "request " + std::to_string(request->id()) + ": ";
    if (Find(request->id()) != request) return name + "running but unknown";
    if (request->status != RequestStatus::kRunning) return name + "running without the status kRunning";
    if (static_cast<int64_t>(request->spec_token_ids.size()) > MaxDrafts(*request)) return name + "too many drafts";
    if (request->num_computed_tokens > request->num_tokens()) return name + "more computed tokens than tokens";
    const auto num_blocks = static_cast<int64_t>(kv_cache_.Blocks(request->id()).size());
    // After a rolled-back step there may be more blocks than needed.
    if (num_blocks < kv_cache_.BlocksFor(request->num_computed_tokens)) return name + "too few blocks";
    if (num_blocks != request->num_blocks_sent) return name + "number of blocks differs from num_blocks_sent";
  }
  for (const auto& [id, request] : requests_) {
    if (request->status == RequestStatus::kRunning) continue;
    const std::string name = "request " + std::to_string(id) + ": ";
    if (IsFinished(request->status)) return name + "finished but not destroyed";
    if (request->num_computed_tokens != 0) return name + "waiting with computed tokens";
    if (!kv_cache_.Blocks(id).empty()) return name + "waiting with blocks";
    if (!request->spec_token_ids.empty()) return name + "waiting with drafts";
  }
  error = CheckLoRAs();
  return error.empty() ? CheckGroups() : error;
}

}  // namespace vllm
