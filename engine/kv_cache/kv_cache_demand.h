// How many KV blocks a sequence needs, all KV-cache groups together. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "engine/config/vllm_config.h"

namespace vllm {

// The most tokens that one step computes of one request.
int64_t MaxChunk(const SchedulerConfig& scheduler);

// The most blocks that a sequence holds at a time in a sliding-window group, however long it becomes: the window before
// a chunk, the chunk, and one block more because the first token of the two need not begin a block.
int64_t WindowPeakBlocks(int64_t sliding_window, int64_t block_size, int64_t max_chunk);

// The most blocks that a sequence which grows to num_tokens holds at a time.
int64_t PeakBlocks(const CacheConfig& cache, int64_t num_tokens, int64_t max_chunk);

// The longest sequence whose peak is within cache.num_blocks, as if alone; kUnlimitedTokens when every length is. A
// multiple of the block size; 0 when there are fewer blocks than groups.
inline constexpr int64_t kUnlimitedTokens = int64_t{1} << 60;
int64_t MaxTokensThatFit(const CacheConfig& cache, int64_t max_chunk);

}  // namespace vllm
