// AttentionWorkspace: what the attention layers of one rank share, one at a time: the step's tasks and the threads'
// scratch. Grows to what the largest layer needs. Used by the rank's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention.h"

namespace vllm {

// Some rows' whole attention against one KV head, or one partition of it.
struct AttentionStepTask {
  AttentionTask task;
  int64_t partition = -1;  // below 0: all
  int64_t first_slot = 0;
};

struct AttentionWorkspace {
  std::vector<AttentionStepTask> tasks;
  std::vector<AttentionStepTask> merging;   // those that read what partitions among `tasks` gave
  std::vector<std::vector<float>> scratch;  // [num_threads]
};

}  // namespace vllm
