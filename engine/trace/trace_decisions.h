// Converts the Scheduler's decisions to trace records, and compares recorded decisions with those of a replay. Pure
// functions; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "engine/request/engine_core_outputs.h"
#include "engine/sched/scheduler_output.h"
#include "engine/trace/trace_format.h"

namespace vllm {

// Sets all fields of `step` but elapsed_us. Allocates nothing once the vectors of `step` have grown.
void SetTraceStep(const SchedulerOutput& output, int64_t num_blocks_in_use, TraceStep& step);

SampledEnd SampledEndOf(const EngineCoreOutput& output);

// Return how the recorded decisions differ from the replayed ones, or an empty string. They ignore times.
std::string StepDifference(const TraceStep& recorded, const TraceStep& replayed);
std::string UpdateDifference(const TraceUpdate& recorded, const EngineCoreOutputs& replayed);

}  // namespace vllm
