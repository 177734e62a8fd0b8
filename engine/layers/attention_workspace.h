// AttentionWorkspace: the tasks of a step and the per-thread scratch of attention. The attention layers of a rank share
// it, one layer at a time. Reserved at load for the largest step of the largest layer. Used by the rank's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention.h"

namespace vllm {

// Attention of some rows to one KV head, over all of their partitions or over one.
struct AttentionStepTask {
  kernels::AttentionTask task;
  int64_t partition = -1;  // below 0: all
  int64_t first_slot = 0;
};

struct AttentionWorkspace {
  std::vector<AttentionStepTask> tasks;
  std::vector<AttentionStepTask> merging;   // tasks that merge partition results of `tasks`
  std::vector<std::vector<float>> scratch;  // [num_threads]

  size_t size_bytes() const {
    size_t bytes = (tasks.capacity() + merging.capacity()) * sizeof(AttentionStepTask);
    for (const std::vector<float>& floats : scratch) bytes += floats.capacity() * sizeof(float);
    return bytes;
  }
};

}  // namespace vllm
