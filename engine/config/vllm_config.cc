#include "engine/config/vllm_config.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "engine/config/errors.h"
#include "engine/config/max_model_len.h"
#include "kernels/threading/cpu_topology.h"
#include "kernels/threading/thread_pool.h"

namespace vllm {
namespace {

constexpr int64_t kMaxModelLen = int64_t{1} << 30;
constexpr int64_t kMaxBatchedTokens = int64_t{1} << 20;
constexpr int64_t kMaxBlocks = int64_t{1} << 30;
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr int64_t kMaxVocab = int64_t{1} << 24;
constexpr int64_t kMaxThreads = 1024;

[[noreturn]] void Fail(const std::string& flag, const std::string& why, int64_t value) {
  throw ConfigError(flag + ": " + why + " (" + std::to_string(value) + ")");
}

void CheckRange(const char* flag, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high) Fail(flag, "outside " + std::to_string(low) + " to " + std::to_string(high), value);
}

void CheckHeads(const ModelConfig& model, int64_t ranks) {
  if (model.num_attention_heads == 0) return;  // no model yet, or it has no attention
  if (model.num_attention_heads % ranks != 0) {
    Fail("--tensor-parallel-size",
         "does not divide the model's " + std::to_string(model.num_attention_heads) + " attention heads", ranks);
  }
  for (const int64_t kv_heads : {model.num_key_value_heads, model.num_global_key_value_heads}) {
    if (kv_heads == 0 || kv_heads % ranks == 0 || ranks % kv_heads == 0) continue;
    Fail("--tensor-parallel-size",
         "neither divides nor is a multiple of the model's " + std::to_string(kv_heads) + " KV heads", ranks);
  }
}

void CheckSpeculative(const SpeculativeConfig& config) {
  constexpr int64_t kMaxMatch = 1024;
  constexpr int64_t kMaxCachedRequests = 1 << 30;
  constexpr double kMaxSpecFactor = 16;
  const auto check = [](const char* key, int64_t value, int64_t low, int64_t high) {
    CheckRange((std::string("--speculative-config: ") + key).c_str(), value, low, high);
  };
  const auto check_number = [](const char* key, bool is_valid, const char* why, double value) {
    if (is_valid) return;
    std::ostringstream text;
    text << "--speculative-config: " << key << ": " << why << " (" << value << ")";
    throw ConfigError(text.str());
  };
  check("num_speculative_tokens", config.num_speculative_tokens, 0, kMaxSpeculativeTokens);
  check("prompt_lookup_min", config.prompt_lookup_min, 1, kMaxMatch);
  check("prompt_lookup_max", config.prompt_lookup_max, 1, kMaxMatch);
  if (config.prompt_lookup_min > config.prompt_lookup_max) {
    Fail("--speculative-config: prompt_lookup_min",
         "above prompt_lookup_max " + std::to_string(config.prompt_lookup_max), config.prompt_lookup_min);
  }
  check("suffix_decoding_max_tree_depth", config.suffix_decoding_max_tree_depth, 1, kMaxMatch);
  check("suffix_decoding_max_cached_requests", config.suffix_decoding_max_cached_requests, 0, kMaxCachedRequests);
  const double factor = config.suffix_decoding_max_spec_factor;
  check_number("suffix_decoding_max_spec_factor", factor > 0 && factor <= kMaxSpecFactor,
               "must be above 0 and at most 16", factor);
  check("draft_tensor_parallel_size", config.draft_tensor_parallel_size, 0, 64);
  const double probability = config.suffix_decoding_min_token_prob;
  check_number("suffix_decoding_min_token_prob", probability >= 0 && probability <= 1, "outside 0 to 1", probability);
}

}  // namespace

kernels::KVDType DefaultKVDType(const ModelConfig& model) {
  const bool quantized = model.has_block_weights || model.quantization.method != QuantizationMethod::kNone;
  return quantized && model.dtype == kernels::DType::kFloat16 ? kernels::KVDType::kBFloat16
                                                              : kernels::KVDTypeOf(model.dtype);
}

int64_t VllmConfig::MaxCpuLoRAs() const {
  if (lora.max_cpu_loras > 0) return lora.max_cpu_loras;
  return std::max(scheduler.max_loras, static_cast<int64_t>(lora.adapters.size()));
}

int64_t VllmConfig::NumLoRAsLoadedAtStart() const {
  return std::min(MaxCpuLoRAs(), static_cast<int64_t>(lora.adapters.size()));
}

void VllmConfig::Finalize() {
  CheckRange("--max-model-len", model.max_model_len, 1, kMaxModelLen);
  if (model.max_position_embeddings > 0 && model.max_model_len > DerivedMaxModelLen(model)) {
    Fail("--max-model-len", "the model supports at most " + std::to_string(DerivedMaxModelLen(model)) + " tokens",
         model.max_model_len);
  }
  if (model.is_encoder) {
    // The hidden state of a token depends on the tokens after it, so a text is computed as a whole.
    cache.enable_prefix_caching = false;
    scheduler.enable_chunked_prefill = false;
    scheduler.long_prefill_token_threshold = 0;
    speculative = {};
  }
  CheckRange("--block-size", cache.block_size, 16, 1024);
  if (cache.block_size % 16 != 0) Fail("--block-size", "not a multiple of 16", cache.block_size);
  if (cache.num_blocks_override) CheckRange("--num-kv-blocks", *cache.num_blocks_override, 1, kMaxBlocks);
  if (cache.kv_cache_memory_bytes) CheckRange("--kv-cache-memory", *cache.kv_cache_memory_bytes, 1, kMaxBytes);

  CheckRange("--max-num-seqs", scheduler.max_num_seqs, 1, 4096);
  CheckRange("--max-loras", scheduler.max_loras, 1, 4096);
  CheckRange("--max-cpu-loras", lora.max_cpu_loras, 0, 1 << 20);
  if (lora.max_cpu_loras > 0 && lora.max_cpu_loras < scheduler.max_loras) {
    throw ConfigError("--max-cpu-loras: must be at least --max-loras (" + std::to_string(lora.max_cpu_loras) + " < " +
                      std::to_string(scheduler.max_loras) + ")");
  }
  CheckRange("--max-lora-rank", lora.max_lora_rank, 1, 65536);
  CheckRange("--max-num-batched-tokens", scheduler.max_num_batched_tokens, 1, kMaxBatchedTokens);
  CheckRange("--long-prefill-token-threshold", scheduler.long_prefill_token_threshold, 0, kMaxModelLen);
  if (scheduler.long_prefill_token_threshold > model.max_model_len) {
    Fail("--long-prefill-token-threshold", "above --max-model-len " + std::to_string(model.max_model_len),
         scheduler.long_prefill_token_threshold);
  }
  // Without chunking, a whole prompt must fit into one step.
  if (!scheduler.enable_chunked_prefill) {
    scheduler.max_num_batched_tokens = std::max(scheduler.max_num_batched_tokens, model.max_model_len);
    if (scheduler.max_num_batched_tokens > kMaxBatchedTokens) {
      Fail("--no-enable-chunked-prefill", "--max-model-len is above " + std::to_string(kMaxBatchedTokens),
           model.max_model_len);
    }
  }
  CheckRange("--tensor-parallel-size", parallel.tensor_parallel_size, 1, 64);
  CheckHeads(model, parallel.tensor_parallel_size);
  CheckRange("--data-parallel-size", parallel.data_parallel_size, 1, 64);
  CheckRange("--threads-per-rank", parallel.threads_per_rank, 0, kMaxThreads);
  const kernels::CpuTopology cpus(kernels::UsableCpus());
  if (parallel.threads_per_rank == 0) {
    parallel.threads_per_rank = std::clamp<int64_t>(cpus.num_cores() / parallel.world_size(), 1, kMaxThreads);
  }
  parallel.is_oversubscribed = parallel.num_threads() > cpus.num_threads_at_once();
  CheckRange("--packed-cache-size", load.packed_cache_bytes, 0, kMaxBytes);
  if (max_output_memory_bytes) CheckRange("--max-output-memory", *max_output_memory_bytes, 1, kMaxBytes);
  CheckRange("--max-logprobs", max_logprobs, -1, kMaxVocab);
  CheckSpeculative(speculative);
}

}  // namespace vllm
