// The Scheduler's part that keeps recurrent states for later requests.
#include "engine/sched/scheduler.h"

namespace vllm {

void Scheduler::PlanCheckpoints(Request& request, int64_t num_tokens, bool was_admitted) {
  const int64_t begin = was_admitted ? request.num_computed_tokens : request.num_state_tokens;
  request.num_state_tokens = request.num_computed_tokens + num_tokens - request.num_scheduled_drafts;
  // The running requests need these blocks for their next tokens.
  const int64_t num_other_blocks = num_running() * static_cast<int64_t>(kv_cache_.num_groups());
  kv_cache_.PlanCheckpoints(
      request, begin, request.num_state_tokens, num_other_blocks,
      [&](const RecurrentStateManager::Checkpoint& checkpoint) {
        output_.checkpoints.push_back({request.id(), checkpoint.position, output_.checkpoint_block_ids.size()});
        for (const KVCacheBlock* block : checkpoint.blocks) {
          output_.checkpoint_block_ids.push_back(block->block_id);
        }
      });
  request.wanted_checkpoints.clear();
}

bool Scheduler::WaitsForState(const Request& request, const ComputedBlocks& computed) {
  const int64_t position = request.num_known_prefix_tokens;
  if (position <= computed.num_tokens) return false;
  for (const ScheduledRequest& scheduled : scheduled_) {
    Request& running = *scheduled.request;
    const int64_t end = running.num_computed_tokens + scheduled.num_tokens - running.num_scheduled_drafts;
    if (position <= running.num_computed_tokens || position > end) continue;
    if (kv_cache_.PrefixOf(running, position) != computed.known_prefix_id) continue;
    running.wanted_checkpoints.push_back(position);
    return true;
  }
  return false;
}

}  // namespace vllm
