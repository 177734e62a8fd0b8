#include "engine/layers/head_shards.h"

#include <string>

#include "engine/config/errors.h"

namespace vllm {

HeadShards ShardHeads(int64_t heads, int64_t kv_heads, int rank, int size) {
  if (heads % size != 0) {
    throw ConfigError("--tensor-parallel-size: does not divide the model's " + std::to_string(heads) +
                      " attention heads (" + std::to_string(size) + ")");
  }
  if (kv_heads % size != 0 && size % kv_heads != 0) {
    throw ConfigError("--tensor-parallel-size: neither divides nor is a multiple of the model's " +
                      std::to_string(kv_heads) + " KV heads (" + std::to_string(size) + ")");
  }
  HeadShards shards;
  shards.heads = {heads / size * rank, heads / size};
  if (kv_heads >= size) {
    shards.kv_heads = {kv_heads / size * rank, kv_heads / size};
  } else {
    shards.kv_heads = {kv_heads * rank / size, 1};
    shards.first_of_kv_heads = rank % (size / kv_heads) == 0;
  }
  return shards;
}

}  // namespace vllm
