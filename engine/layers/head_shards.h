// HeadShards: which attention heads a tensor-parallel rank computes. A pure function; any thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/layers/step_context.h"

namespace vllm {

struct HeadShards {
  Shard heads;
  Shard kv_heads;
  // Where there are more ranks than KV heads, several hold the same one; true on the first of them.
  bool first_of_kv_heads = true;
};

// Throws ConfigError when the heads do not divide: heads by ranks, and KV heads by ranks or ranks by KV heads, which
// then hold copies.
HeadShards ShardHeads(const ModelConfig& config, int rank, int size);

}  // namespace vllm
