// AttentionWorkspace: the attention tasks of a step and the scratch of each thread. The attention layers of a rank
// share it, one layer at a time. Reserved at load for the largest step of the largest layer. Part of the rank's
// Workspace; used on the rank's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention.h"

namespace vllm {

// Attention of some rows over one KV head, in all partitions of their KV or in only one (see kernels/attention.h).
struct AttentionStepTask {
  kernels::AttentionTask task;
  int64_t partition = -1;  // below 0: all partitions
  int64_t first_slot = 0;  // with one partition: the slot for the result of the first row
};

struct AttentionWorkspace {
  std::vector<AttentionStepTask> tasks;
  std::vector<AttentionStepTask> merging;   // run after `tasks`, whose partition results they merge
  std::vector<std::vector<float>> scratch;  // [num_threads]

  size_t size_bytes() const {
    size_t bytes = (tasks.capacity() + merging.capacity()) * sizeof(AttentionStepTask);
    for (const std::vector<float>& floats : scratch) bytes += floats.capacity() * sizeof(float);
    return bytes;
  }
};

}  // namespace vllm
