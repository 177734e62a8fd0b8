// FillSnapshot: the scheduler's part of an EngineSnapshot. Reads the scheduler, so engine thread only.
#pragma once

#include "engine/request/engine_snapshot.h"
#include "engine/sched/scheduler.h"

namespace vllm {

// Sets everything except the times of steps and ranks. O(num_blocks + kMaxRequests).
void FillSnapshot(const Scheduler& scheduler, EngineSnapshot& snapshot);

}  // namespace vllm
