// Combines the figures of data-parallel engines, so that they look like one engine. Pure functions; any thread.
#pragma once

#include <memory>
#include <span>

#include "engine/request/engine_snapshot.h"
#include "engine/request/scheduler_stats.h"

namespace vllm {

// Returns the sums of the counts. The KV cache usage is that of all blocks together; `num_blocks` has the number of
// blocks of each engine. Admission counts as paused if it is paused on every engine. REQUIRES: both spans have the same
// size, at least 1.
SchedulerStats SumStats(std::span<const SchedulerStats> stats, std::span<const int64_t> num_blocks);

// Returns a snapshot with the requests and blocks of all engines. The running requests come first. Limits and the
// times of the steps are sums; rank_times has, for each tensor-parallel rank, the sum over the engines. The blocks of
// an engine follow those of the engines before it. REQUIRES: at least one snapshot; none is null.
EngineSnapshot MergeSnapshots(std::span<const std::shared_ptr<const EngineSnapshot>> snapshots);

}  // namespace vllm
