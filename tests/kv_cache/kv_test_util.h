// Helpers for the KV-cache tests: requests with given tokens, block ids as vectors, a hash function that always
// collides, and a fixture that owns a KVCacheManager.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/kv_cache/kv_cache_manager.h"
#include "engine/request/request.h"

namespace vllm {

inline std::vector<int32_t> Iota(int32_t first, int64_t count) {
  std::vector<int32_t> token_ids(static_cast<size_t>(count));
  std::iota(token_ids.begin(), token_ids.end(), first);
  return token_ids;
}

inline std::shared_ptr<EngineCoreRequest> MakeCore(RequestId id, std::vector<int32_t> prompt_token_ids,
                                                   std::string cache_salt = {}) {
  auto core = std::make_shared<EngineCoreRequest>();
  core->request_id = id;
  core->prompt_token_ids = std::move(prompt_token_ids);
  core->cache_salt = std::move(cache_salt);
  core->sampling_params.max_tokens = 100;
  return core;
}

inline std::vector<int32_t> Ids(std::span<KVCacheBlock* const> blocks) {
  std::vector<int32_t> ids;
  for (const KVCacheBlock* block : blocks) ids.push_back(block->block_id);
  return ids;
}

inline std::vector<int32_t> FreeIds(const BlockPool& pool) {
  std::vector<int32_t> ids;
  for (const KVCacheBlock* block : pool.GetAllFreeBlocks()) ids.push_back(block->block_id);
  return ids;
}

inline BlockHash ConstantHash(const BlockHash&, std::span<const int32_t>, std::string_view) { return {1, 2}; }

// A manager with small blocks, and the calls that a scheduler makes to admit a request and to decode.
struct ManagerFixture {
  explicit ManagerFixture(int64_t num_blocks, bool caching = true, BlockHashFunction hash = &HashBlockTokens,
                          int64_t block_size = 4)
      : manager(Config(num_blocks, block_size, caching), 1000, hash) {}

  static CacheConfig Config(int64_t num_blocks, int64_t block_size, bool caching) {
    CacheConfig config;
    config.num_blocks = num_blocks;
    config.block_size = block_size;
    config.enable_prefix_caching = caching;
    return config;
  }

  // Admits the request and computes all its uncached tokens in one step. Returns the number of cached tokens, or -1 if
  // there are too few blocks.
  int64_t Admit(Request& request) {
    const ComputedBlocks computed = manager.GetComputedBlocks(request);
    const int64_t num_cached = computed.num_tokens;
    if (!manager.AllocateSlots(request, request.num_tokens() - num_cached, computed, {})) return -1;
    request.num_computed_tokens = request.num_tokens();
    return num_cached;
  }
  // Runs a decode step with one new token. Returns false if there are too few blocks.
  bool Decode(Request& request, int32_t token_id) {
    request.AppendOutputToken(token_id);
    if (!manager.AllocateSlots(request, 1)) return false;
    ++request.num_computed_tokens;
    return true;
  }
  std::vector<int32_t> Blocks(const Request& request) const { return Ids(manager.Blocks(request.id())); }

  KVCacheManager manager;
};

}  // namespace vllm
