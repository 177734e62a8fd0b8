// Paged causal attention: arguments of the attention kernels. K and V lie as kernels/matrix/kv_cache_layout.h says.
//
// A query's softmax is computed over partitions of kKVPartition positions counted from position 0, each with its own
// maximum, and the partitions are merged in ascending order. So the result depends on the query, its position and the
// KV before it, on nothing else: a partition may be computed with any other rows, in another task or on another thread.
//
// Sums are of float32 and in float32; where the machine has a dot product of bfloat16 pairs and K and V are bfloat16,
// the scaled query and the weights are rounded to bfloat16 as well, and positions are added two at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matrix/kv_cache_layout.h"

namespace vllm {

inline constexpr int64_t kKVPartition = 256;
// Query vectors (rows x heads of one KV head) that one task may hold.
inline constexpr int64_t kMaxQueriesPerTask = 64;

struct AttentionArgs {
  const float* query = nullptr;  // [num_tokens, query_stride], heads side by side
  int64_t query_stride = 0;
  float* out = nullptr;  // [num_tokens, out_stride], heads side by side
  int64_t out_stride = 0;
  const void* key_cache = nullptr;    // this layer's K
  const void* value_cache = nullptr;  // this layer's V
  KVCacheLayout layout;
  int64_t num_queries_per_kv = 1;
  float scale = 1.0f;
  float softcap = 0.0f;        // above 0: a scaled score becomes softcap * tanh(score / softcap)
  int64_t sliding_window = 0;  // a query sees this many positions, itself included; 0: all
  // Results of single partitions: [num_slots, num_kv_heads, num_queries_per_kv, PartialFloats].
  float* partials = nullptr;
};

// A row of the step and its token's position.
struct AttentionRow {
  int64_t row = 0;
  int64_t position = 0;
};

// Some rows against one KV head.
// REQUIRES: num_rows * num_queries_per_kv <= kMaxQueriesPerTask, or num_rows is 1.
struct AttentionTask {
  const AttentionRow* rows = nullptr;
  int64_t num_rows = 0;
  const int32_t* block_table = nullptr;  // of all rows; or, for one partition, of any of them: it is the same there
  int64_t kv_head = 0;
  // Where `partials` has what a partition gave: [partitions the row sees], below 0: nowhere, compute it. Null: none.
  // REQUIRES: null, or num_rows is 1.
  const int32_t* partial_slots = nullptr;
};

struct AttentionKernels {
  // Writes the outputs of the task's rows.
  void (*forward)(const AttentionArgs& args, const AttentionTask& task, float* scratch);
  // Writes what the partition that begins at position `partition` * kKVPartition gives to each of the task's rows into
  // args.partials at slots [first_slot, first_slot + task.num_rows). The task's partial_slots are not read.
  void (*forward_partial)(const AttentionArgs& args, const AttentionTask& task, int64_t partition, int64_t first_slot,
                          float* scratch);
};

// Floats of scratch that a task needs.
int64_t AttentionScratchFloats(const AttentionArgs& args);

// Floats of a query's result over one partition.
constexpr int64_t PartialFloats(int64_t head_dim) { return PaddedHeadDim(head_dim) + 16; }

}  // namespace vllm
