// AttentionWorkspace: what the attention layers of one rank share, one at a time: the step's tasks and the threads'
// scratch. Reserved at load for the largest step of the largest layer. Used by the rank's thread.
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

  size_t size_bytes() const {
    size_t bytes = (tasks.capacity() + merging.capacity()) * sizeof(AttentionStepTask);
    for (const std::vector<float>& floats : scratch) bytes += floats.capacity() * sizeof(float);
    return bytes;
  }
};

}  // namespace vllm
