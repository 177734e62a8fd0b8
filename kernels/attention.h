// Attention kernels: arguments and function table of paged attention, which is causal unless look_ahead is set. Any
// thread may call a kernel; calls that run at the same time need separate scratch. kernels/matrix/kv_cache_layout.h
// specifies the layout of K and V.
//
// The softmax of a query is computed over partitions of kKVPartition positions, starting at position 0. Each partition
// has its own maximum, and partitions are merged in ascending order. So the result depends only on the query, its
// position and the KV in its window. Products are accumulated in float32. If K and V are bfloat16 and the instruction
// set has a dot product of bfloat16 pairs, the scaled query and the softmax weights are rounded to bfloat16, and
// products are added in pairs: two dimensions of a score, or two positions of an output. With tile registers
// (avx512_amx), the products of up to 32 dimensions, or of the sixteen positions of a group, are added as two sums, of
// the first and of the second elements of the pairs, before both are added to the score or the output.
//
// With latent attention (KVCacheLayout::value_dim), the key and the value of a token are one vector, queries have
// head_dim elements and outputs value_dim. Scores are then float32 products even if the KV cache is bfloat16.
//
// A query head may have a sink: a logit that joins the softmax as if it were the score of one more position whose value
// is zero. It is added after all partitions are merged, so precomputed partitions do not contain it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matrix/kv_cache_layout.h"

namespace vllm::kernels {

inline constexpr int64_t kKVPartition = 256;
inline constexpr int64_t kLookAheadAll = int64_t{1} << 62;
// Maximum number of query vectors (rows x query heads per KV head) of a task with more than one row.
inline constexpr int64_t kMaxQueriesPerTask = 64;

struct AttentionArgs {
  const float* query = nullptr;  // [num_tokens, query_stride], heads contiguous
  int64_t query_stride = 0;
  float* out = nullptr;  // [num_tokens, out_stride], heads contiguous
  int64_t out_stride = 0;
  const void* key_cache = nullptr;    // K of this layer; unused with latent attention
  const void* value_cache = nullptr;  // V of this layer
  KVCacheLayout layout;
  int64_t num_queries_per_kv = 1;
  float scale = 1.0f;
  float softcap = 0.0f;  // if positive, a scaled score becomes softcap * tanh(score / softcap)
  // A query attends to at most this many positions up to its own; 0: no limit.
  int64_t sliding_window = 0;
  // A query also attends to this many positions after its own, up to AttentionRow::last_position. 0: attention is
  // causal. kLookAheadAll: no limit.
  int64_t look_ahead = 0;
  const float* sinks = nullptr;  // [num_query_heads], neither scaled nor soft-capped; null: no sinks
  // Added to the scaled and soft-capped scores: that of a query at position p and a key at position k gets element
  // clamp(k - p, -span, span) + span of its head. [num_query_heads, 2 * span + 1]; null: nothing is added.
  const float* position_bias = nullptr;
  int64_t position_bias_span = 0;
  // Results of precomputed partitions (AttentionTask::partial_slots): [num_slots, num_kv_heads, num_queries_per_kv,
  // PartialFloats(layout.ValueDim())].
  float* partials = nullptr;
};

// A row of the step and the position of its token.
struct AttentionRow {
  int64_t row = 0;
  int64_t position = 0;
  int64_t last_position = 0;  // of the row's sequence; read only if attention is not causal
};

// Attention of some rows over one KV head.
// REQUIRES: num_rows * num_queries_per_kv <= kMaxQueriesPerTask, or num_rows is 1.
struct AttentionTask {
  const AttentionRow* rows = nullptr;
  int64_t num_rows = 0;
  // The block table of the rows. forward_partial reads only the entries of its partition, which must be the same for
  // all rows.
  const int32_t* block_table = nullptr;
  int64_t kv_head = 0;
  // For each partition from position 0 on, the slot of `partials` that holds its result. A negative entry means that
  // the partition has to be computed. Null: no partition has a slot.
  // REQUIRES: null, or num_rows is 1.
  const int32_t* partial_slots = nullptr;
};

struct AttentionKernels {
  // Writes the outputs of the task's rows. scratch: [AttentionScratchFloats(args)].
  void (*forward)(const AttentionArgs& args, const AttentionTask& task, float* scratch);
  // For each of the task's rows, computes the partition that begins at position `partition` * kKVPartition. Writes the
  // results to args.partials, slots [first_slot, first_slot + task.num_rows). Ignores task.partial_slots.
  void (*forward_partial)(const AttentionArgs& args, const AttentionTask& task, int64_t partition, int64_t first_slot,
                          float* scratch);
};

// Returns the scratch size that suffices for any task, in floats.
int64_t AttentionScratchFloats(const AttentionArgs& args);

// Returns the size in floats of the result of one query over one partition.
constexpr int64_t PartialFloats(int64_t value_dim) { return PaddedHeadDim(value_dim) + 16; }

}  // namespace vllm::kernels
