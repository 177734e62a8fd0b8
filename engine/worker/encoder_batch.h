// EncoderBatch: the attention metadata and the scratch memory for keys and values of a model whose attention is not
// causal. Such a model computes whole texts, so keys and values are needed only while a layer runs, and all layers
// share the memory. Owned by the ModelRunner; used by the rank's thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/layers/attention/attention.h"
#include "engine/worker/input_batch.h"

namespace vllm {

class EncoderBatch {
 public:
  // `layers` are the shapes in CachedLayers::encoder. Throws std::bad_alloc.
  EncoderBatch(const VllmConfig& config, const std::vector<KVCacheSpec>& layers, const AttentionPlanOptions& options);

  // Lays out the entries of a step. Throws std::logic_error if an entry is not a whole text.
  void Update(const std::vector<BatchEntry>& entries);

  const AttentionMetadata& attention() const { return attention_; }
  KVCache& cache() { return cache_; }
  size_t size_bytes() const { return size_bytes_; }

 private:
  int64_t block_size_;
  KVCache cache_;
  size_t size_bytes_;
  AttentionMetadata attention_;
  std::vector<int32_t> block_ids_;  // 0, 1, 2, ...: the sequences take blocks in their order
};

}  // namespace vllm
