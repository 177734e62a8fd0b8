// Paged causal attention: arguments of the attention kernels. kernels/matrix/kv_cache_layout.h specifies the layout of
// K and V.
//
// The softmax of a query is computed over partitions of kKVPartition positions, counted from position 0. Each
// partition has its own maximum, and partitions are merged in ascending order. So the result depends only on the
// query, its position and the preceding KV. A partition may be computed together with any other rows, in another task
// or on another thread.
//
// Products are accumulated in float32. If the CPU has a dot product of bfloat16 pairs and K and V are bfloat16, the
// scaled query and the softmax weights are rounded to bfloat16 too, and positions are added two at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matrix/kv_cache_layout.h"

namespace vllm::kernels {

inline constexpr int64_t kKVPartition = 256;
// Maximum number of query vectors (rows x heads of one KV head) per task.
inline constexpr int64_t kMaxQueriesPerTask = 64;

struct AttentionArgs {
  const float* query = nullptr;  // [num_tokens, query_stride], heads contiguous
  int64_t query_stride = 0;
  float* out = nullptr;  // [num_tokens, out_stride], heads contiguous
  int64_t out_stride = 0;
  const void* key_cache = nullptr;    // this layer's K
  const void* value_cache = nullptr;  // this layer's V
  KVCacheLayout layout;
  int64_t num_queries_per_kv = 1;
  float scale = 1.0f;
  float softcap = 0.0f;        // if positive, a scaled score becomes softcap * tanh(score / softcap)
  int64_t sliding_window = 0;  // number of positions a query attends to, including its own; 0: all
  // Results of single partitions, see AttentionTask::partial_slots: [num_slots, num_kv_heads, num_queries_per_kv,
  // PartialFloats].
  float* partials = nullptr;
};

// A row of the step, and the position of its token.
struct AttentionRow {
  int64_t row = 0;
  int64_t position = 0;
};

// Some rows against one KV head.
// REQUIRES: num_rows * num_queries_per_kv <= kMaxQueriesPerTask, or num_rows is 1.
struct AttentionTask {
  const AttentionRow* rows = nullptr;
  int64_t num_rows = 0;
  const int32_t* block_table = nullptr;  // the rows' table; for forward_partial, any row's: they agree there
  int64_t kv_head = 0;
  // Slots of `partials` that hold the precomputed partitions: [partitions the row attends to]. A negative entry means
  // that the partition has to be computed. Null: compute all.
  // REQUIRES: null, or num_rows is 1.
  const int32_t* partial_slots = nullptr;
};

struct AttentionKernels {
  // Writes the outputs of the task's rows.
  void (*forward)(const AttentionArgs& args, const AttentionTask& task, float* scratch);
  // For each of the task's rows, computes the partition that begins at position `partition` * kKVPartition. Writes the
  // results to args.partials, slots [first_slot, first_slot + task.num_rows). Ignores task.partial_slots.
  void (*forward_partial)(const AttentionArgs& args, const AttentionTask& task, int64_t partition, int64_t first_slot,
                          float* scratch);
};

// Returns the scratch size of a task, in floats.
int64_t AttentionScratchFloats(const AttentionArgs& args);

// Returns the size of one query's result over one partition, in floats.
constexpr int64_t PartialFloats(int64_t head_dim) { return PaddedHeadDim(head_dim) + 16; }

}  // namespace vllm::kernels
