// Paged causal attention: arguments of the attention kernel and the layout of the KV cache it reads.
//
// K of a layer: [num_blocks, num_kv_heads, block_size / 16, head_dim, 16], sixteen tokens side by side so that one
// vector holds one dimension of sixteen keys. V of a layer: [num_blocks, num_kv_heads, block_size, head_dim_padded],
// head_dim_padded the next multiple of 16.
//
// A query's softmax is computed over partitions of kKvPartition positions counted from position 0, each with its own
// maximum, and the partitions are merged in ascending order. So the result depends on the query, its position and the
// KV before it, on nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace vllm {

inline constexpr int64_t kKvPartition = 256;
inline constexpr int64_t kTokensPerKeyGroup = 16;
// Query vectors (rows x heads of one KV head) that one task may hold.
inline constexpr int64_t kMaxQueriesPerTask = 32;
// Queries whose values are summed up at once, at most.
inline constexpr int64_t kMaxValueQueries = 4;

constexpr int64_t PaddedHeadDim(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }

struct AttentionArgs {
  const float* query = nullptr;  // [num_tokens, query_stride], heads side by side
  int64_t query_stride = 0;
  float* out = nullptr;  // [num_tokens, out_stride], heads side by side
  int64_t out_stride = 0;
  const void* key_cache = nullptr;    // this layer's K
  const void* value_cache = nullptr;  // this layer's V
  DType kv_dtype = DType::kFloat32;
  int64_t block_size = 16;
  int64_t num_kv_heads = 1;
  int64_t num_queries_per_kv = 1;
  int64_t head_dim = 0;
  float scale = 1.0f;
  float softcap = 0.0f;        // above 0: a scaled score becomes softcap * tanh(score / softcap)
  int64_t sliding_window = 0;  // a query sees this many positions, itself included; 0: all
};

// Rows [first_row, first_row + num_rows) of one request against one KV head.
// REQUIRES: num_rows * num_queries_per_kv <= kMaxQueriesPerTask, or num_rows is 1.
struct AttentionTask {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;            // of first_row
  const int32_t* block_table = nullptr;  // the request's block ids
  int64_t kv_head = 0;
};

// Floats of scratch that a task needs.
int64_t AttentionScratchFloats(const AttentionArgs& args);

// Writes K and V of one token and one KV head into the cache at `slot` = block * block_size + offset.
void WriteKv(const AttentionArgs& args, void* key_cache, void* value_cache, int64_t slot, int64_t kv_head,
             const float* key, const float* value);

}  // namespace vllm
