#include "engine/config/vllm_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/config/errors.h"
#include "kernels/threading/cpu_topology.h"
#include "kernels/threading/thread_pool.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

VllmConfig ValidConfig() {
  VllmConfig config;
  config.model.max_model_len = 512;
  config.model.max_position_embeddings = 512;
  config.model.num_attention_heads = 8;
  config.model.num_key_value_heads = 4;
  return config;
}

std::string RejectionMessage(const std::function<void(VllmConfig&)>& change) {
  VllmConfig config = ValidConfig();
  change(config);
  return MessageOf<ConfigError>([&] { config.Finalize(); });
}

TEST(VllmConfigTest, DefaultsAreAcceptedAndThreadsPerRankIsSet) {
  VllmConfig config = ValidConfig();
  config.Finalize();
  EXPECT_GE(config.parallel.threads_per_rank, 1);
  EXPECT_EQ(config.scheduler.max_num_batched_tokens, 2048);
  config.parallel.tensor_parallel_size = 8;
  config.parallel.threads_per_rank = 0;
  config.Finalize();
  EXPECT_GE(config.parallel.threads_per_rank, 1);
}

TEST(VllmConfigTest, TokenBudgetMayBeBelowMaxNumSeqs) {
  VllmConfig config = ValidConfig();
  config.scheduler.max_num_batched_tokens = 16;
  config.scheduler.max_num_seqs = 64;
  EXPECT_NO_THROW(config.Finalize());
  EXPECT_EQ(config.scheduler.max_num_batched_tokens, 16);
}

TEST(VllmConfigTest, KVCacheHasTheDtypeOfTheModelExceptForFloat16WithQuantizedWeights) {
  VllmConfig config = ValidConfig();
  for (const kernels::DType dtype : {kernels::DType::kFloat32, kernels::DType::kFloat16, kernels::DType::kBFloat16}) {
    config.model.dtype = dtype;
    EXPECT_EQ(config.KVCacheDType(), kernels::KVDTypeOf(dtype));
    for (const QuantizationMethod method : {QuantizationMethod::kInt8, QuantizationMethod::kGptq}) {
      config.model.quantization.method = method;
      EXPECT_EQ(config.KVCacheDType(),
                dtype == kernels::DType::kFloat32 ? kernels::KVDType::kFloat32 : kernels::KVDType::kBFloat16);
    }
    config.model.quantization.method = QuantizationMethod::kNone;
  }
  config.model.dtype = kernels::DType::kFloat16;
  config.model.has_block_weights = true;
  EXPECT_EQ(config.KVCacheDType(), kernels::KVDType::kBFloat16);
  config.cache.cache_dtype = kernels::KVDType::kFloat16;
  EXPECT_EQ(config.KVCacheDType(), kernels::KVDType::kFloat16);
}

TEST(VllmConfigTest, WithoutChunkedPrefillTheTokenBudgetIsRaisedToMaxModelLen) {
  VllmConfig config = ValidConfig();
  config.scheduler.max_num_batched_tokens = 16;
  config.scheduler.enable_chunked_prefill = false;
  config.Finalize();
  EXPECT_EQ(config.scheduler.max_num_batched_tokens, 512);
}

TEST(VllmConfigTest, RejectionsNameTheFlag) {
  const std::pair<const char*, std::function<void(VllmConfig&)>> cases[] = {
      {"--block-size: outside 16 to 1024 (0)", [](VllmConfig& c) { c.cache.block_size = 0; }},
      {"--speculative-config: num_speculative_tokens: outside 0 to 128 (129)",
       [](VllmConfig& c) { c.speculative.num_speculative_tokens = 129; }},
      {"--speculative-config: prompt_lookup_min: above prompt_lookup_max 5 (6)",
       [](VllmConfig& c) { c.speculative.prompt_lookup_min = 6; }},
      {"--speculative-config: suffix_decoding_min_token_prob: outside 0 to 1 (nan)",
       [](VllmConfig& c) { c.speculative.suffix_decoding_min_token_prob = std::nan(""); }},
      {"--block-size: not a multiple of 16 (24)", [](VllmConfig& c) { c.cache.block_size = 24; }},
      {"--block-size: outside 16 to 1024 (1040)", [](VllmConfig& c) { c.cache.block_size = 1040; }},
      {"--num-kv-blocks: outside 1 to 1073741824 (0)", [](VllmConfig& c) { c.cache.num_blocks_override = 0; }},
      {"--kv-cache-memory: ", [](VllmConfig& c) { c.cache.kv_cache_memory_bytes = 0; }},
      {"--max-output-memory: outside 1 to ", [](VllmConfig& c) { c.max_output_memory_bytes = 0; }},
      {"--max-num-seqs: outside 1 to 4096 (0)", [](VllmConfig& c) { c.scheduler.max_num_seqs = 0; }},
      {"--max-num-seqs: outside 1 to 4096 (4097)", [](VllmConfig& c) { c.scheduler.max_num_seqs = 4097; }},
      {"--max-num-batched-tokens: ", [](VllmConfig& c) { c.scheduler.max_num_batched_tokens = 0; }},
      {"--max-num-batched-tokens: ", [](VllmConfig& c) { c.scheduler.max_num_batched_tokens = INT64_MAX; }},
      {"--long-prefill-token-threshold: ", [](VllmConfig& c) { c.scheduler.long_prefill_token_threshold = -1; }},
      {"--long-prefill-token-threshold: above --max-model-len 512 (513)",
       [](VllmConfig& c) { c.scheduler.long_prefill_token_threshold = 513; }},
      {"--tensor-parallel-size: outside 1 to 64 (0)", [](VllmConfig& c) { c.parallel.tensor_parallel_size = 0; }},
      {"--tensor-parallel-size: outside 1 to 64 (65)", [](VllmConfig& c) { c.parallel.tensor_parallel_size = 65; }},
      {"--tensor-parallel-size: does not divide the model's 8 attention heads (3)",
       [](VllmConfig& c) { c.parallel.tensor_parallel_size = 3; }},
      {"--data-parallel-size: outside 1 to 64 (0)", [](VllmConfig& c) { c.parallel.data_parallel_size = 0; }},
      {"--data-parallel-size: outside 1 to 64 (65)", [](VllmConfig& c) { c.parallel.data_parallel_size = 65; }},
      {"--threads-per-rank: outside 0 to 1024 (-1)", [](VllmConfig& c) { c.parallel.threads_per_rank = -1; }},
      {"--max-model-len: outside 1 to ", [](VllmConfig& c) { c.model.max_model_len = 0; }},
      {"--max-model-len: the model supports at most 512 tokens (513)",
       [](VllmConfig& c) { c.model.max_model_len = 513; }},
      {"--max-logprobs: ", [](VllmConfig& c) { c.max_logprobs = -2; }},
  };
  for (const auto& [message, change] : cases) {
    EXPECT_TRUE(RejectionMessage(change).starts_with(message)) << message << " -> " << RejectionMessage(change);
  }
}

TEST(VllmConfigTest, CoresAreDividedAmongTheRanksOfAllEngines) {
  const int64_t num_cores = kernels::CpuTopology(kernels::UsableCpus()).num_cores();
  VllmConfig config = ValidConfig();
  config.parallel.tensor_parallel_size = 2;
  config.parallel.data_parallel_size = 3;
  config.Finalize();
  EXPECT_EQ(config.parallel.threads_per_rank, std::max<int64_t>(1, num_cores / 6));
  EXPECT_EQ(config.parallel.num_threads(), 6 * config.parallel.threads_per_rank);
}

TEST(VllmConfigTest, RopeScalingAllowsAMaxModelLenAboveMaxPositionEmbeddings) {
  VllmConfig config = ValidConfig();
  config.model.rope_scaling.kind = RopeScaling::Kind::kLinear;
  config.model.rope_scaling.factor = 2.0;
  config.model.max_model_len = 1024;
  EXPECT_NO_THROW(config.Finalize());
}

}  // namespace
}  // namespace vllm
