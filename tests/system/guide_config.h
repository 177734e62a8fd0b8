// The configuration of an engine that runs the bundled model, for tests that compare schedules. Pure functions.
#pragma once

#include <cstdint>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/test_isa.h"
#include "tests/support/thinking_model.h"

namespace vllm::testing_support {

// num_blocks = 0: as many blocks as 64 MiB hold.
inline VllmConfig GuideConfig(int64_t num_blocks = 0, int64_t max_num_batched_tokens = 2048, int64_t max_num_seqs = 128,
                              int64_t ranks = 1) {
  VllmConfig config;
  config.model = LoadModelConfig(GuideDirectory());
  config.scheduler.max_num_batched_tokens = max_num_batched_tokens;
  config.scheduler.max_num_seqs = max_num_seqs;
  config.parallel.tensor_parallel_size = ranks;
  config.cache.kv_cache_memory_bytes = int64_t{64} << 20;
  if (num_blocks > 0) config.cache.num_blocks_override = num_blocks;
  config.Finalize();
  return WithTestIsa(config);
}

}  // namespace vllm::testing_support
