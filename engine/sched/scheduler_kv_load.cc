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
  // memory from others.
  if (!kv_cache_.FullSequenceFits(request, computed, NumBeamBlocks(request))) return false;
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
          kv_cache_.InsertLoadedBlocks(*request, load->first_block, load->blocks,
                                       [this](size_t i, int32_t block_id) { connector_->CopyIn(i, block_id); });
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
  Save(request, kv_cache_.PublishedBlocks(request, num_tokens));
}

void Scheduler::Save(Request& request, std::span<const SequenceBlock> blocks) {
  if (blocks.empty()) return;
  const int64_t num_blocks = connector_->Save(request, blocks);
  kv_transfer_.num_saved_tokens += num_blocks * kv_cache_.block_size() / static_cast<int64_t>(kv_cache_.num_groups());
}

void Scheduler::SetKVConnector(KVConnector* connector) {
  connector_ = connector;
  kv_cache_.SetSkipListener([this](Request& request, std::span<const SequenceBlock> blocks) { Save(request, blocks); });
}

}  // namespace vllm
