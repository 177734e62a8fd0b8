#include "engine/sched/scheduler_snapshot.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

namespace vllm {
namespace {

std::vector<int32_t> Last(std::span<const int32_t> ids, size_t max) {
  const auto last = ids.last(std::min(ids.size(), max));
  return {last.begin(), last.end()};
}

RequestSnapshot MakeRequestSnapshot(const Request& request, SteadyTime now) {
  RequestSnapshot row;
  row.request_id = request.id();
  row.external_req_id = request.core()->external_req_id;
  row.status = request.status;
  row.num_prompt_tokens = request.num_prompt_tokens();
  row.num_cached_tokens = std::max<int64_t>(0, request.num_cached_tokens);
  row.num_computed_tokens = request.num_computed_tokens;
  row.num_output_tokens = request.num_output_tokens();
  row.max_tokens = request.params().max_tokens.value_or(0);
  row.num_preemptions = request.num_preemptions;
  row.priority = request.core()->priority;
  row.age = now - request.core()->arrival_time;
  if (request.first_token_time != SteadyTime{}) {
    row.time_to_first_token = request.first_token_time - request.core()->arrival_time;
    row.decode_time = request.last_token_time - request.first_token_time;
  }
  row.last_prompt_token_ids = Last(request.core()->prompt_token_ids, EngineSnapshot::kMaxPromptIds);
  row.last_output_token_ids = Last(request.output_token_ids(), EngineSnapshot::kMaxOutputIds);
  return row;
}

// Returns the state of more than half of the blocks that are not free, or, if there is none, one of the frequent
// states.
uint16_t MajorityOf(std::span<const uint16_t> states) {
  uint16_t candidate = EngineSnapshot::kFree;
  size_t count = 0;
  for (const uint16_t state : states) {
    if (state == EngineSnapshot::kFree) continue;
    if (count == 0) candidate = state;
    count += state == candidate ? 1 : static_cast<size_t>(-1);
  }
  return candidate;
}

void FillBlocks(const Scheduler& scheduler, EngineSnapshot& snapshot) {
  const KVCacheManager& kv_cache = scheduler.kv_cache();
  const auto num_blocks = static_cast<size_t>(kv_cache.num_blocks());
  std::vector<uint16_t> states(num_blocks, EngineSnapshot::kFree);
  for (size_t i = 0; i < num_blocks; ++i) {
    const KVCacheBlock& block = kv_cache.pool().block(static_cast<int32_t>(i + 1));
    if (block.ref_cnt > 0) {
      states[i] = block.ref_cnt > 1 ? EngineSnapshot::kShared : EngineSnapshot::kUsed;
    } else if (block.is_cached) {
      states[i] = EngineSnapshot::kCachedFree;
    }
  }
  for (size_t row = 0; row < snapshot.requests.size(); ++row) {
    for (size_t group = 0; group < kv_cache.num_groups(); ++group) {
      for (const KVCacheBlock* block : kv_cache.Blocks(snapshot.requests[row].request_id, group)) {
        if (block->is_null() || block->ref_cnt > 1) continue;
        states[static_cast<size_t>(block->block_id - 1)] = static_cast<uint16_t>(EngineSnapshot::kFirstRequest + row);
      }
    }
  }
  const size_t per_cell = (num_blocks + EngineSnapshot::kMaxCells - 1) / EngineSnapshot::kMaxCells;
  snapshot.blocks_per_cell = static_cast<int64_t>(per_cell);
  if (per_cell == 1) {
    snapshot.kv_blocks = std::move(states);
    return;
  }
  for (size_t begin = 0; begin < num_blocks; begin += per_cell) {
    snapshot.kv_blocks.push_back(MajorityOf(std::span(states).subspan(begin, std::min(per_cell, num_blocks - begin))));
  }
}

}  // namespace

void FillSnapshot(const Scheduler& scheduler, EngineSnapshot& snapshot) {
  snapshot.time = std::chrono::steady_clock::now();
  snapshot.scheduler = scheduler.MakeStats();
  snapshot.max_num_batched_tokens = scheduler.config().max_num_batched_tokens;
  snapshot.max_num_seqs = scheduler.config().max_num_seqs;
  snapshot.num_kv_blocks = scheduler.kv_cache().num_blocks();
  snapshot.block_size = scheduler.kv_cache().block_size();
  std::vector<const Request*> requests(scheduler.running().begin(), scheduler.running().end());
  if (requests.size() < EngineSnapshot::kMaxRequests) {
    scheduler.AppendWaiting(EngineSnapshot::kMaxRequests - requests.size(), requests);
  }
  if (requests.size() > EngineSnapshot::kMaxRequests) requests.resize(EngineSnapshot::kMaxRequests);
  snapshot.requests.clear();
  for (const Request* request : requests) {
    snapshot.requests.push_back(MakeRequestSnapshot(*request, snapshot.time));
  }
  FillBlocks(scheduler, snapshot);
}

}  // namespace vllm
