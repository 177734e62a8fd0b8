// HeadShards: the attention heads that a tensor-parallel rank computes. A plain value. ShardHeads is a pure function;
// any thread may call it.
#pragma once

#include <cstdint>

#include "engine/layers/step_context.h"

namespace vllm {

struct HeadShards {
  Shard heads;
  Shard kv_heads;
  // With more ranks than KV heads, several ranks hold copies of one KV head. False on all of these ranks except the
  // first.
  bool first_of_kv_heads = true;
};

// Returns the heads of a layer that `rank` computes in a group of `size` ranks. Throws ConfigError unless `size`
// divides the number of attention heads, and either divides the number of KV heads or is a multiple of it.
HeadShards ShardHeads(int64_t heads, int64_t kv_heads, int rank, int size);

}  // namespace vllm
