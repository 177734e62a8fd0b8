// SchedulerOutput: the work of one step, sent to the workers as a delta against their cached state. Owned and reused by
// the Scheduler; workers read it only during ExecuteModel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/kv_cache/kv_cache_block.h"
#include "engine/request/engine_core_request.h"

namespace vllm {

// A request that is not in the workers' cached state.
struct NewRequestData {
  EngineCoreRequestPtr request;
  std::vector<int32_t> block_ids;  // [num_groups, num_blocks]: one block table per KV-cache group
  int64_t num_computed_tokens = 0;
  std::vector<int32_t> state_block_ids = {};  // [num_state_blocks], if the model has recurrent state
};

// Requests in the workers' cached state, as a structure of arrays. The new tokens of entry i are
// new_token_ids[new_token_offsets[i] .. new_token_offsets[i + 1]). new_block_ids has the same layout; an entry has the
// same number of blocks for each KV-cache group, one group after the other. The workers are not notified of blocks that
// leave a sliding window, because they never read those again.
struct CachedRequestData {
  std::vector<RequestId> request_ids;
  std::vector<uint8_t> resumed_from_preemption;  // 1: the blocks replace the worker's table instead of extending it
  std::vector<int64_t> num_computed_tokens;
  std::vector<int32_t> new_token_ids;  // sampled since the request was last sent
  std::vector<size_t> new_token_offsets{0};
  std::vector<int32_t> new_block_ids;
  std::vector<size_t> new_block_offsets{0};
  // The drafts of entry i, in the layout of new_token_ids. They follow the request's tokens in this step only, and the
  // last tokens that the entry computes are its drafts.
  std::vector<int32_t> spec_token_ids;
  std::vector<size_t> spec_token_offsets{0};
  // The new blocks of the recurrent state of each entry with resumed_from_preemption, one entry after the other.
  std::vector<int32_t> state_block_ids;

  size_t size() const { return request_ids.size(); }
  std::span<const int32_t> NewTokens(size_t i) const {
    return std::span(new_token_ids).subspan(new_token_offsets[i], new_token_offsets[i + 1] - new_token_offsets[i]);
  }
  std::span<const int32_t> NewBlocks(size_t i) const {
    return std::span(new_block_ids).subspan(new_block_offsets[i], new_block_offsets[i + 1] - new_block_offsets[i]);
  }
  std::span<const int32_t> Drafts(size_t i) const {
    return std::span(spec_token_ids).subspan(spec_token_offsets[i], spec_token_offsets[i + 1] - spec_token_offsets[i]);
  }
  void Clear();
};

// Tells the workers to copy a request's recurrent state once the request has `position` tokens.
struct ScheduledCheckpoint {
  RequestId request_id = 0;
  int64_t position = 0;
  size_t first_block = 0;  // of its num_state_blocks ids in SchedulerOutput::checkpoint_block_ids
};

struct NumScheduledTokens {
  RequestId request_id = 0;
  int64_t num_tokens = 0;  // with the drafts
};

struct SchedulerOutput {
  std::vector<NewRequestData> scheduled_new_reqs;
  CachedRequestData scheduled_cached_reqs;
  // One entry per scheduled request: first the requests that were running, in order but interactive ones first, then
  // the admitted requests.
  std::vector<NumScheduledTokens> num_scheduled_tokens;
  int64_t total_num_scheduled_tokens = 0;
  bool has_interactive_request = false;  // a scheduled request is interactive
  // Requests in the workers' cached state that finished or were aborted since the last step. Workers discard the state
  // of these requests. Each id is sent once.
  std::vector<RequestId> finished_req_ids;
  // Requests that lost their blocks: preempted in this step, or admitted in a step that was rolled back. Workers keep
  // the tokens of these requests and replace their block tables when the requests are resumed.
  std::vector<RequestId> preempted_req_ids;
  // Workers make these copies in order, before they compute tokens and even if the step is cancelled.
  std::vector<BlockCopy> block_copies;
  // Of scheduled requests, in the order of num_scheduled_tokens, those of a request by ascending position.
  std::vector<ScheduledCheckpoint> checkpoints;
  std::vector<int32_t> checkpoint_block_ids;
  std::vector<int32_t> lora_slots;  // the different LoRA adapters of the running requests

  void Clear();
};

}  // namespace vllm
