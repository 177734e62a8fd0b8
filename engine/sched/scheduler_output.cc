#include "engine/sched/scheduler_output.h"

namespace vllm {

void CachedRequestData::Clear() {
  request_ids.clear();
  resumed_from_preemption.clear();
  num_computed_tokens.clear();
  new_token_ids.clear();
  new_token_offsets.assign(1, 0);
  new_block_ids.clear();
  new_block_offsets.assign(1, 0);
  spec_token_ids.clear();
  spec_token_offsets.assign(1, 0);
  state_block_ids.clear();
}

void SchedulerOutput::Clear() {
  scheduled_new_reqs.clear();
  scheduled_cached_reqs.Clear();
  num_scheduled_tokens.clear();
  total_num_scheduled_tokens = 0;
  has_interactive_request = false;
  finished_req_ids.clear();
  preempted_req_ids.clear();
  block_copies.clear();
  checkpoints.clear();
  checkpoint_block_ids.clear();
  lora_slots.clear();
}

}  // namespace vllm
