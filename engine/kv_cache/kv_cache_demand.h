// The number of KV blocks that a sequence needs, summed over all KV-cache groups, and for its recurrent state. Used to
// size the cache and to reject
// requests that can never fit. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "engine/config/vllm_config.h"

namespace vllm {

// Returns the maximum number of tokens that one step computes for one request.
int64_t MaxChunk(const SchedulerConfig& scheduler);

// Returns an upper bound on the blocks that a sequence of any length holds at once in a sliding-window group: the
// window before a chunk, the chunk itself, and one more block because the window may start in the middle of a block.
int64_t WindowPeakBlocks(int64_t sliding_window, int64_t block_size, int64_t max_chunk);

// Returns the number of leading blocks that no token after the first num_tokens tokens attends to. sliding_window 0:
// none.
int64_t NumSkippedBlocks(int64_t sliding_window, int64_t block_size, int64_t num_tokens);

// Returns an upper bound on the blocks that a sequence holds at once while it grows to num_tokens tokens.
int64_t PeakBlocks(const CacheConfig& cache, int64_t num_tokens, int64_t max_chunk);

// Returns an upper bound on the blocks that `width` forks of a sequence (KVCacheManager::Fork) hold in addition to
// PeakBlocks of one, while they grow to num_tokens tokens. They share at least the full blocks of the first
// num_shared_tokens tokens.
int64_t ExtraForkBlocks(const CacheConfig& cache, int64_t num_shared_tokens, int64_t num_tokens, int64_t width,
                        int64_t max_chunk);

// Returns the largest number of tokens for which `width` forks fit if no other sequence runs: at most MaxTokensThatFit.
int64_t MaxForkTokensThatFit(const CacheConfig& cache, int64_t num_shared_tokens, int64_t width, int64_t max_chunk);

// Returns the largest number of tokens for which PeakBlocks is at most cache.num_blocks. This is a multiple of the
// block size, and 0 if there are fewer blocks than groups. Returns kUnlimitedTokens if every length fits. A sequence of
// up to the returned length fits if it runs alone.
inline constexpr int64_t kUnlimitedTokens = int64_t{1} << 60;
int64_t MaxTokensThatFit(const CacheConfig& cache, int64_t max_chunk);

}  // namespace vllm
