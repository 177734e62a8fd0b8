#include "engine/data_parallel/merge_engines.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace vllm {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Appends the requests with (`running`) or without RequestStatus::kRunning, and writes their new index to `new_index`.
void AppendRequests(const EngineSnapshot& from, bool running, std::vector<size_t>& new_index, EngineSnapshot& to) {
  for (size_t i = 0; i < from.requests.size(); ++i) {
    if ((from.requests[i].status == RequestStatus::kRunning) != running) continue;
    if (to.requests.size() == EngineSnapshot::kMaxRequests) return;
    new_index[i] = to.requests.size();
    to.requests.push_back(from.requests[i]);
  }
}

// Appends the cells of `from`, joined into cells of to.blocks_per_cell blocks. A joined cell has the state of its first
// part that is not free.
void AppendBlocks(const EngineSnapshot& from, const std::vector<size_t>& new_index, EngineSnapshot& to) {
  const size_t begin = to.kv_blocks.size();
  to.kv_blocks.resize(begin + static_cast<size_t>(CeilDiv(from.num_kv_blocks, to.blocks_per_cell)),
                      EngineSnapshot::kFree);
  for (size_t i = 0; i < from.kv_blocks.size(); ++i) {
    uint16_t state = from.kv_blocks[i];
    if (state >= EngineSnapshot::kFirstRequest) {
      const size_t index = new_index[state - EngineSnapshot::kFirstRequest];
      state = index < EngineSnapshot::kMaxRequests ? static_cast<uint16_t>(EngineSnapshot::kFirstRequest + index)
                                                   : EngineSnapshot::kUsed;
    }
    const int64_t first_block = static_cast<int64_t>(i) * from.blocks_per_cell;
    uint16_t& cell = to.kv_blocks[begin + static_cast<size_t>(first_block / to.blocks_per_cell)];
    if (cell == EngineSnapshot::kFree) cell = state;
  }
}

// Returns the fewest blocks per cell with which the cells of all engines are at most kMaxCells.
int64_t BlocksPerCell(std::span<const std::shared_ptr<const EngineSnapshot>> snapshots) {
  int64_t num_blocks = 0;
  int64_t blocks_per_cell = 1;
  for (const auto& snapshot : snapshots) {
    num_blocks += snapshot->num_kv_blocks;
    blocks_per_cell = std::max(blocks_per_cell, snapshot->blocks_per_cell);
  }
  // The last cell of each engine may be incomplete.
  const auto max_cells = static_cast<int64_t>(EngineSnapshot::kMaxCells - snapshots.size());
  return std::max(blocks_per_cell, CeilDiv(num_blocks, max_cells));
}

}  // namespace

SchedulerStats SumStats(std::span<const SchedulerStats> stats, std::span<const int64_t> num_blocks) {
  SchedulerStats sum;
  sum.admission_paused = true;
  double num_used = 0;
  int64_t num_total = 0;
  for (size_t i = 0; i < stats.size(); ++i) {
    const SchedulerStats& engine = stats[i];
    sum.step += engine.step;
    sum.num_running_reqs += engine.num_running_reqs;
    sum.num_waiting_reqs += engine.num_waiting_reqs;
    sum.prefix_cache.requests += engine.prefix_cache.requests;
    sum.prefix_cache.queries += engine.prefix_cache.queries;
    sum.prefix_cache.hits += engine.prefix_cache.hits;
    sum.num_preemptions += engine.num_preemptions;
    sum.num_scheduled_tokens += engine.num_scheduled_tokens;
    sum.num_computed_tokens += engine.num_computed_tokens;
    sum.num_prompt_tokens += engine.num_prompt_tokens;
    sum.num_generation_tokens += engine.num_generation_tokens;
    sum.num_interactive_tokens += engine.num_interactive_tokens;
    sum.spec_decoding.Add(engine.spec_decoding);
    sum.kv_transfer.num_loaded_tokens += engine.kv_transfer.num_loaded_tokens;
    sum.kv_transfer.num_saved_tokens += engine.kv_transfer.num_saved_tokens;
    sum.admission_paused &= engine.admission_paused;
    num_used += engine.kv_cache_usage * static_cast<double>(num_blocks[i]);
    num_total += num_blocks[i];
  }
  sum.kv_cache_usage = num_total > 0 ? num_used / static_cast<double>(num_total) : 0.0;
  return sum;
}

EngineSnapshot MergeSnapshots(std::span<const std::shared_ptr<const EngineSnapshot>> snapshots) {
  EngineSnapshot merged;
  merged.block_size = snapshots.front()->block_size;
  merged.blocks_per_cell = BlocksPerCell(snapshots);
  std::vector<SchedulerStats> stats;
  std::vector<int64_t> num_blocks;
  for (const auto& snapshot : snapshots) {
    stats.push_back(snapshot->scheduler);
    num_blocks.push_back(snapshot->num_kv_blocks);
    merged.time = std::max(merged.time, snapshot->time);
    merged.max_num_batched_tokens += snapshot->max_num_batched_tokens;
    merged.max_num_seqs += snapshot->max_num_seqs;
    merged.num_executed_steps += snapshot->num_executed_steps;
    merged.step_time += snapshot->step_time;
    merged.last_step_time = std::max(merged.last_step_time, snapshot->last_step_time);
    merged.rank_times.resize(std::max(merged.rank_times.size(), snapshot->rank_times.size()));
    for (size_t rank = 0; rank < snapshot->rank_times.size(); ++rank) {
      merged.rank_times[rank] += snapshot->rank_times[rank];
    }
    merged.num_kv_blocks += snapshot->num_kv_blocks;
    // The engines make their snapshots at the same time.
    merged.cost = std::max(merged.cost, snapshot->cost);
  }
  merged.scheduler = SumStats(stats, num_blocks);
  std::vector<std::vector<size_t>> new_index;
  for (const auto& snapshot : snapshots)
    new_index.emplace_back(snapshot->requests.size(), EngineSnapshot::kMaxRequests);
  for (const bool running : {true, false}) {
    for (size_t i = 0; i < snapshots.size(); ++i) AppendRequests(*snapshots[i], running, new_index[i], merged);
  }
  for (size_t i = 0; i < snapshots.size(); ++i) AppendBlocks(*snapshots[i], new_index[i], merged);
  return merged;
}

}  // namespace vllm
