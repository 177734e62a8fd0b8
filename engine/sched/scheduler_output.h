// SchedulerOutput: one step's work, told to the ranks as a difference to what they already know.
// Owned and reused by the Scheduler; ranks read it between ExecuteModel's start and end only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/engine_core_request.h"

namespace vllm {

// A request the ranks have not seen (or have been told to forget).
struct NewRequestData {
  EngineCoreRequestPtr request;
  std::vector<int32_t> block_ids;  // [num_groups, num_blocks]: a table of each KV-cache group, one after the other
  int64_t num_computed_tokens = 0;
};

// Requests the ranks know, in structure-of-arrays form. Entry i's tokens are
// new_token_ids[new_token_offsets[i] .. new_token_offsets[i + 1]), its blocks likewise: equally many for each KV-cache
// group, one group after the other. Blocks that fall out of a sliding window are not told: no rank reads them again.
struct CachedRequestData {
  std::vector<RequestId> request_ids;
  std::vector<uint8_t> resumed_from_preemption;  // 1: the blocks replace the rank's table instead of extending it
  std::vector<int64_t> num_computed_tokens;
  std::vector<int32_t> new_token_ids;  // sampled since the rank was last told
  std::vector<size_t> new_token_offsets{0};
  std::vector<int32_t> new_block_ids;
  std::vector<size_t> new_block_offsets{0};

  size_t size() const { return request_ids.size(); }
  std::span<const int32_t> NewTokens(size_t i) const {
    return std::span(new_token_ids).subspan(new_token_offsets[i], new_token_offsets[i + 1] - new_token_offsets[i]);
  }
  std::span<const int32_t> NewBlocks(size_t i) const {
    return std::span(new_block_ids).subspan(new_block_offsets[i], new_block_offsets[i + 1] - new_block_offsets[i]);
  }
  void Clear();
};

struct NumScheduledTokens {
  RequestId request_id = 0;
  int64_t num_tokens = 0;
};

struct SchedulerOutput {
  std::vector<NewRequestData> scheduled_new_reqs;
  CachedRequestData scheduled_cached_reqs;
  // Every scheduled request once: running ones in running order, then those admitted from waiting.
  std::vector<NumScheduledTokens> num_scheduled_tokens;
  int64_t total_num_scheduled_tokens = 0;
  // Finished, aborted since the last step: ranks forget them. Told once.
  std::vector<RequestId> finished_req_ids;
  // Preempted in this step: ranks keep their tokens but their blocks are void.
  std::vector<RequestId> preempted_req_ids;

  void Clear();
};

}  // namespace vllm
