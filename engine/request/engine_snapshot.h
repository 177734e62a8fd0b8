// EngineSnapshot: the state of a running engine between two steps, for a viewer. The engine thread makes it on request
// (EngineMonitor) and does not change it afterwards. A plain value; any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/request/engine_core_request.h"
#include "engine/request/request_status.h"
#include "engine/request/scheduler_stats.h"

namespace vllm {

struct RequestSnapshot {
  RequestId request_id = 0;
  std::string external_req_id;
  RequestStatus status = RequestStatus::kWaiting;
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;    // prompt tokens found in the prefix cache
  int64_t num_computed_tokens = 0;  // of prompt and output
  int64_t num_output_tokens = 0;
  int64_t max_tokens = 0;  // limit of num_output_tokens
  int64_t num_preemptions = 0;
  int64_t priority = 0;
  Seconds age{0};                   // since arrival
  Seconds time_to_first_token{-1};  // negative: no token yet
  Seconds decode_time{0};           // from the first token to the last
  std::vector<int32_t> last_prompt_token_ids;
  std::vector<int32_t> last_output_token_ids;
};

struct EngineSnapshot {
  static constexpr size_t kMaxRequests = 1024;
  static constexpr size_t kMaxCells = 65536;
  static constexpr size_t kMaxPromptIds = 64;
  static constexpr size_t kMaxOutputIds = 96;

  // The state of a cell of kv_blocks. Values from kFirstRequest on: used only by requests[value - kFirstRequest].
  static constexpr uint16_t kFree = 0;
  static constexpr uint16_t kCachedFree = 1;  // free, but in the prefix cache
  static constexpr uint16_t kShared = 2;      // used by several requests
  static constexpr uint16_t kUsed = 3;        // used by one request that is not in `requests`
  static constexpr uint16_t kFirstRequest = 4;

  SteadyTime time{};
  SchedulerStats scheduler;
  int64_t max_num_batched_tokens = 0;  // budget of a step
  int64_t max_num_seqs = 0;

  // Since start. Steps that were cut short count only as time.
  int64_t num_executed_steps = 0;
  Seconds step_time{0};
  Seconds last_step_time{0};
  std::vector<Seconds> rank_times;  // [num_ranks]

  std::vector<RequestSnapshot> requests;  // the running ones, then the waiting ones in order, at most kMaxRequests

  int64_t num_kv_blocks = 0;
  int64_t block_size = 0;  // tokens
  // The state of blocks 1, 2, ... If there are more than kMaxCells, each cell stands for blocks_per_cell blocks and has
  // a frequent state of those that are not free.
  int64_t blocks_per_cell = 1;
  std::vector<uint16_t> kv_blocks;

  Seconds cost{0};  // the time that the engine thread took to make this snapshot
};

}  // namespace vllm
