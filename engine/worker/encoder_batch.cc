#include "engine/worker/encoder_batch.h"

#include <numeric>
#include <stdexcept>
#include <string>

namespace vllm {

namespace {

// Every text may leave a block partly filled.
int64_t NumBlocks(const VllmConfig& config) {
  return config.scheduler.max_num_batched_tokens / config.cache.block_size + config.scheduler.max_num_seqs + 1;
}

}  // namespace

EncoderBatch::EncoderBatch(const VllmConfig& config, const std::vector<KVCacheSpec>& layers,
                           const AttentionPlanOptions& options)
    : block_size_(config.cache.block_size),
      cache_({.attention = layers}, NumBlocks(config), config.cache.block_size, config.KVCacheDType()),
      size_bytes_(static_cast<size_t>(NumBlocks(config) * CachedLayers{.attention = layers}.BlockBytes(
                                                              config.cache.block_size, config.KVCacheDType()))),
      block_ids_(static_cast<size_t>(NumBlocks(config))) {
  std::iota(block_ids_.begin(), block_ids_.end(), 0);
  attention_.groups.resize(cache_.groups().windows.size());
  for (AttentionGroup& group : attention_.groups) group.plan = AttentionPlan(options);
}

void EncoderBatch::Update(const std::vector<BatchEntry>& entries) {
  attention_.rows.clear();
  AttentionGroup& first = attention_.groups[0];
  first.sequences.clear();
  first.slot_mapping.clear();
  int64_t block = 0;
  for (const BatchEntry& entry : entries) {
    if (entry.first_position() != 0 || entry.num_rows != entry.state->num_prompt_tokens()) {
      throw std::logic_error("encoder batch: request " + std::to_string(entry.state->request->request_id) +
                             " is not scheduled as a whole");
    }
    first.sequences.push_back({entry.first_row, entry.num_rows, 0, block_ids_.data() + block});
    for (int64_t position = 0; position < entry.num_rows; ++position) {
      attention_.rows.push_back({entry.first_row + position, position, entry.num_rows - 1});
      first.slot_mapping.push_back(block * block_size_ + position);
    }
    block += (entry.num_rows + block_size_ - 1) / block_size_;
  }
  for (size_t g = 1; g < attention_.groups.size(); ++g) {
    attention_.groups[g].sequences = first.sequences;
    attention_.groups[g].slot_mapping = first.slot_mapping;
  }
  for (AttentionGroup& group : attention_.groups) group.plan.Make(group.sequences);
}

}  // namespace vllm
