#include "engine/kv_cache/kv_cache_demand.h"

#include <algorithm>

namespace vllm {

namespace {

int64_t PeakOfBlocks(const CacheConfig& cache, int64_t num_blocks, int64_t max_chunk) {
  int64_t sum = cache.num_state_blocks;
  for (const int64_t window : cache.group_windows) {
    sum += window > 0 ? std::min(num_blocks, WindowPeakBlocks(window, cache.block_size, max_chunk)) : num_blocks;
  }
  return sum;
}

}  // namespace

int64_t MaxChunk(const SchedulerConfig& scheduler) {
  const int64_t threshold = scheduler.long_prefill_token_threshold;
  return threshold > 0 ? std::min(threshold, scheduler.max_num_batched_tokens) : scheduler.max_num_batched_tokens;
}

int64_t WindowPeakBlocks(int64_t sliding_window, int64_t block_size, int64_t max_chunk) {
  return (sliding_window - 1 + max_chunk + block_size - 1) / block_size + 1;
}

int64_t NumSkippedBlocks(int64_t sliding_window, int64_t block_size, int64_t num_tokens) {
  return sliding_window > 0 ? std::max<int64_t>(0, num_tokens - sliding_window + 1) / block_size : 0;
}

int64_t PeakBlocks(const CacheConfig& cache, int64_t num_tokens, int64_t max_chunk) {
  return PeakOfBlocks(cache, (num_tokens + cache.block_size - 1) / cache.block_size, max_chunk);
}

int64_t ExtraForkBlocks(const CacheConfig& cache, int64_t num_shared_tokens, int64_t num_tokens, int64_t width,
                        int64_t max_chunk) {
  const int64_t num_blocks = (num_tokens + cache.block_size - 1) / cache.block_size;
  const int64_t num_shared = std::min(num_shared_tokens / cache.block_size, num_blocks);
  int64_t sum = 0;
  for (const int64_t window : cache.group_windows) {
    const int64_t own = num_blocks - num_shared;
    sum += (width - 1) * (window > 0 ? std::min(own, WindowPeakBlocks(window, cache.block_size, max_chunk)) : own);
  }
  return sum;
}

int64_t MaxForkTokensThatFit(const CacheConfig& cache, int64_t num_shared_tokens, int64_t width, int64_t max_chunk) {
  const int64_t max_tokens = MaxTokensThatFit(cache, max_chunk);
  const auto fits = [&](int64_t num_tokens) {
    return PeakBlocks(cache, num_tokens, max_chunk) +
               ExtraForkBlocks(cache, num_shared_tokens, num_tokens, width, max_chunk) <=
           cache.num_blocks;
  };
  // More tokens than this need the same number of blocks: every group has a window and has reached its peak.
  int64_t low = 0;
  int64_t high = std::min(max_tokens, num_shared_tokens + (cache.num_blocks + 1) * cache.block_size);
  if (fits(high)) return max_tokens;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

int64_t MaxTokensThatFit(const CacheConfig& cache, int64_t max_chunk) {
  // If a sequence of num_blocks + 1 blocks fits, every group has a sliding window and has reached its peak, so longer
  // sequences fit too.
  if (PeakOfBlocks(cache, cache.num_blocks + 1, max_chunk) <= cache.num_blocks) return kUnlimitedTokens;
  int64_t low = 0, high = cache.num_blocks;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (PeakOfBlocks(cache, middle, max_chunk) <= cache.num_blocks) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low * cache.block_size;
}

}  // namespace vllm
