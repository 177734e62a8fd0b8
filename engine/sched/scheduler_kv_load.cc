// The members of Scheduler that use the KVConnector.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/sched/kv_connector.h"
#include "engine/sched/scheduler.h"

namespace vllm {

bool Scheduler::StartLoad(Request& request, const ComputedBlocks& computed) {
  if (connector_ == nullptr || !request.reads_prefix_cache()) return false;
  const int64_t block_size = kv_cache_.block_size();
  const int64_t first_block = computed.num_tokens / block_size;
  // Without progress since the last load, another one would find nothing more.
  if (first_block <= request.num_blocks_at_load) return false;
  const int64_t max_blocks = (request.num_tokens() - 1) / block_size - first_block;
  if (max_blocks <= 0) return false;
  // Load only if the whole request fits now. Otherwise it could not be admitted, and the loaded blocks would only take
  // memory from others. The free blocks of the hit must stay, because the loaded blocks are of use only after them.
  int64_t num_free = kv_cache_.pool().num_free_blocks() - NumBeamBlocks(request);
  for (const std::vector<KVCacheBlock*>& hit : computed.groups) {
    num_free -= std::count_if(hit.begin(), hit.end(), [](const KVCacheBlock* b) { return b->ref_cnt == 0; });
  }
  if (kv_cache_.BlocksFor(request.num_tokens()) - first_block > num_free) return false;
  const KVConnector::StartedLoad load = connector_->StartLoad(request, first_block, max_blocks);
  if (load.load_id == 0) return false;
  request.num_blocks_at_load = first_block;
  request.kv_load_id = load.load_id;
  request.leads_kv_load = load.is_leader;
  request.status_before_load = request.status;
  request.status = RequestStatus::kWaitingForRemoteKVs;
  waiting_->Remove(&request);
  loading_.push_back(&request);
  return true;
}

void Scheduler::FinishLoads() {
  if (connector_ == nullptr) return;
  while (const KVConnector::FinishedLoad* load = connector_->NextFinishedLoad()) {
    bool has_leader = false;
    for (Request* request : loading_) {
      if (request->kv_load_id != load->load_id || !request->leads_kv_load) continue;
      has_leader = true;
      const int64_t num_blocks =
          kv_cache_.InsertLoadedBlocks(*request, load->first_block, load->num_blocks,
                                       [this](int64_t index, int32_t id) { connector_->CopyIn(index, id); });
      kv_transfer_.num_loaded_tokens += num_blocks * kv_cache_.block_size();
    }
    // Iterate backwards, so that requests that return to the front of the waiting queue keep their order.
    for (size_t i = loading_.size(); i-- > 0;) {
      Request* request = loading_[i];
      if (request->kv_load_id != load->load_id) continue;
      request->status = request->status_before_load;
      request->kv_load_id = 0;
      request->leads_kv_load = false;
      if (!has_leader) request->num_blocks_at_load = -1;  // the leader was aborted; one of these loads the blocks again
      loading_.erase(loading_.begin() + static_cast<std::ptrdiff_t>(i));
      waiting_->Prepend(request);
    }
  }
}

void Scheduler::SaveBlocks(Request& request) {
  if (connector_ == nullptr || request.status == RequestStatus::kFinishedError) return;
  // Logits that are not numbers are found when a token is sampled. Before that, the KV may contain such values.
  if (request.first_token_time == SteadyTime{}) return;
  const int64_t num_tokens = std::min(request.num_computed_tokens, request.num_tokens() - 1);
  const int64_t num_blocks = connector_->Save(request, kv_cache_.PublishedBlocks(request, num_tokens));
  kv_transfer_.num_saved_tokens += num_blocks * kv_cache_.block_size();
}

}  // namespace vllm
