// The engine's whole configuration: made once from flags and files, validated once by Finalize, then read-only.
// Names and defaults are vLLM's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/model_config.h"
#include "kernels/isa.h"
#include "kernels/matrix/kv_cache_layout.h"
#include "kernels/threading/spin_wait.h"

namespace vllm {

struct CacheConfig {
  int64_t block_size = 16;  // tokens a KV block; a multiple of 16
  bool enable_prefix_caching = true;
  std::optional<KVDType> cache_dtype;            // none: as the model computes
  std::optional<int64_t> num_blocks_override;    // --num-kv-blocks, null block not counted
  std::optional<int64_t> kv_cache_memory_bytes;  // --kv-cache-memory, all ranks together
  int64_t num_blocks = 0;                        // usable blocks, set at start-up; the null block comes on top
  // The sliding window of each KV-cache group, 0: full attention; set at start-up by what the model needs.
  std::vector<int64_t> group_windows{0};
};

enum class SchedulingPolicy : uint8_t { kFcfs, kPriority };

struct SchedulerConfig {
  int64_t max_num_batched_tokens = 2048;
  int64_t max_num_seqs = 128;
  int64_t long_prefill_token_threshold = 0;  // 0: off
  bool enable_chunked_prefill = true;
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  // A waiting prompt is admitted only when all of it fits into free blocks, though it is computed in chunks.
  bool scheduler_reserve_full_isl = true;
};

struct ParallelConfig {
  int64_t tensor_parallel_size = 1;
  int64_t threads_per_rank = 0;  // 0: the cores this process may use (CpuTopology) divided by the ranks
  bool pin_cores = true;         // with more than one rank, each rank's threads keep to cores of their own
  // More threads than CPUs this process may use; set by Finalize.
  bool is_oversubscribed = false;

  int64_t num_threads() const { return tensor_parallel_size * threads_per_rank; }
  // Threads that share a CPU must not spin while they wait for each other.
  WaitPolicy Wait() const { return is_oversubscribed ? WaitPolicy::kSleep : WaitPolicy::kSpinThenSleep; }
};

enum class LoadFormat : uint8_t { kAuto, kSafetensors, kGguf, kDummy };

struct LoadConfig {
  LoadFormat load_format = LoadFormat::kAuto;
  std::string packed_cache_directory;  // where packed weights are kept between starts; empty: nowhere
  int64_t packed_cache_bytes = 0;      // --packed-cache-size, all files together; 0: nothing is kept
  // Weights of fewer bytes are not worth a file: packing them takes less time than a person notices.
  int64_t packed_cache_min_bytes = int64_t{16} << 20;
};

enum class LinearBackend : uint8_t { kNative, kOpenBlas };

// The type of the weights; bfloat16 instead of float16 where they are quantized: next to inputs rounded to 8 bits its
// rounding is not seen, and instruction sets multiply it directly.
KVDType DefaultKVDType(const ModelConfig& model);

struct VllmConfig {
  ModelConfig model;
  CacheConfig cache;
  SchedulerConfig scheduler;
  ParallelConfig parallel;
  LoadConfig load;
  int64_t max_logprobs = 20;
  // --max-output-memory: what the outputs of all unfinished requests may take; none: a share of what is free.
  std::optional<int64_t> max_output_memory_bytes;
  uint64_t seed = 0;  // for requests without a seed of their own
  // OpenBLAS sums in an order that depends on the number of rows: results then depend on batching.
  LinearBackend linear_backend = LinearBackend::kNative;
  std::optional<Isa> isa;  // none: the best that the machine runs

  // What K and V are stored as.
  KVDType KVCacheDType() const { return cache.cache_dtype.value_or(DefaultKVDType(model)); }

  // Fills what is derived (threads_per_rank, budget against max_model_len) and checks every field and combination.
  // Throws ConfigError naming the flag and its value.
  void Finalize();
};

}  // namespace vllm
