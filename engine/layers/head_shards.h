// HeadShards: the attention heads that a tensor-parallel rank computes. A pure function; any thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/layers/step_context.h"

namespace vllm {

struct HeadShards {
  Shard heads;
  Shard kv_heads;
  // With more ranks than KV heads, several ranks hold the same KV head. True on the first of them.
  bool first_of_kv_heads = true;
};

// Throws ConfigError unless `size` divides the number of heads, and divides or is a multiple of the number of KV heads.
// With more ranks than KV heads, ranks hold copies.
HeadShards ShardHeads(const ModelConfig& config, int rank, int size);

}  // namespace vllm
