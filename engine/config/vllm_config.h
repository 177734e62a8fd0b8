// VllmConfig: the engine's whole configuration. Built from flags and files, then validated by Finalize. After that,
// only the values that the engine determines at start-up change. Plain values; any thread may read its copy. Fields
// that vLLM also has keep its names and defaults.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/model_config.h"
#include "engine/config/speculative_config.h"
#include "kernels/isa.h"
#include "kernels/matrix/kv_cache_layout.h"
#include "kernels/threading/spin_wait.h"

namespace vllm {

struct CacheConfig {
  int64_t block_size = 16;  // tokens per KV block; a multiple of 16
  bool enable_prefix_caching = true;
  std::optional<kernels::KVDType> cache_dtype;  // none: DefaultKVDType
  std::optional<int64_t> num_blocks_override;   // --num-kv-blocks, without the null block
  // --kv-cache-memory, the total of all ranks, engines and processes on this machine
  std::optional<int64_t> kv_cache_memory_bytes;
  int64_t num_blocks = 0;  // usable blocks, without the null block; set at start-up
  // The sliding window of each KV-cache group in tokens; 0: full attention. Set at start-up from the model.
  std::vector<int64_t> group_windows{0};
  // The blocks of one recurrent state (RecurrentStateLayout); 0: the model has none. Set at start-up from the model.
  int64_t num_state_blocks = 0;
};

enum class SchedulingPolicy : uint8_t { kFcfs, kPriority };

struct SchedulerConfig {
  int64_t max_num_batched_tokens = 2048;
  int64_t max_num_seqs = 128;
  int64_t long_prefill_token_threshold = 0;  // 0: off
  bool enable_chunked_prefill = true;
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  // Admits a waiting request only if there are enough free blocks for its prompt and its output so far, not just for
  // its first chunk.
  bool scheduler_reserve_full_isl = true;
  int64_t max_loras = 1;  // the LoRA adapters that running requests may use at the same time
};

struct LoRAAdapter;

struct LoRAConfig {
  int64_t max_lora_rank = 16;
  // The adapters that requests may choose by name. An adapter that was added while the engine ran replaces an earlier
  // one with the same name.
  std::vector<std::shared_ptr<const LoRAAdapter>> adapters;
  std::string default_lora;   // the adapter of requests that choose none; empty: the base model
  int64_t max_cpu_loras = 0;  // see VllmConfig::MaxCpuLoRAs; 0: the default
};

struct ParallelConfig {
  int64_t tensor_parallel_size = 1;
  int64_t data_parallel_size = 1;  // engines in this process; each has tensor_parallel_size ranks
  int64_t data_parallel_rank = 0;  // the index of an engine; set by DataParallelClient
  // The processes of a distributed job, and how many of them run on this machine and divide its memory. Each has
  // data_parallel_size engines.
  int64_t num_processes = 1;
  int64_t num_local_processes = 1;
  // 0: the cores that this process may use (CpuTopology), divided among the ranks of all engines.
  int64_t threads_per_rank = 0;
  bool pin_cores = true;  // with more than one rank in all, pins every thread to its own CPU if there are enough
  // True if there are more threads than this process's CPUs and CPU quota can run at the same time; set by Finalize.
  bool is_oversubscribed = false;

  // The engines on this machine.
  int64_t num_local_engines() const { return data_parallel_size * num_local_processes; }
  // The ranks of all engines of this process.
  int64_t world_size() const { return data_parallel_size * tensor_parallel_size; }
  int64_t num_threads() const { return world_size() * threads_per_rank; }
  // Threads that share a CPU must not spin while waiting for each other.
  kernels::WaitPolicy Wait() const {
    return is_oversubscribed ? kernels::WaitPolicy::kSleep : kernels::WaitPolicy::kSpinThenSleep;
  }
};

struct StructuredOutputsConfig {
  // Appends the tokens that a grammar leaves no choice about without a step for each. The tokens are the same.
  bool enable_jump_decoding = true;
  // Constrains the whole output of a model that thinks, instead of the answer after its thought.
  bool enable_in_reasoning = false;
};

class MatrixStore;

enum class LoadFormat : uint8_t { kAuto, kSafetensors, kGguf, kDummy };

// How much of the model is loaded. Written by the ranks' threads; any thread may read.
struct LoadProgress {
  std::atomic<int64_t> num_layers{0};  // of all ranks; 0: unknown
  std::atomic<int64_t> num_loaded_layers{0};
};

struct LoadConfig {
  LoadFormat load_format = LoadFormat::kAuto;
  std::string packed_cache_directory;  // directory of the packed-weight cache; empty: no cache
  int64_t packed_cache_bytes = 0;      // --packed-cache-size, total size of all files; 0: no cache
  // Models with fewer bytes of weights are not cached, because packing them takes no noticeable time.
  int64_t packed_cache_min_bytes = int64_t{16} << 20;
  std::string kernel_variants_directory;   // of the files that name the faster kernels, see ChooseKernels; empty: none
  std::shared_ptr<LoadProgress> progress;  // may be null
  // The matrices that the data-parallel engines of this process share; null: there is one engine. Set by
  // DataParallelClient.
  std::shared_ptr<MatrixStore> matrices;
};

// The cache of KV blocks on disk, see DiskKVConnector.
struct KVDiskCacheConfig {
  std::string directory;
  int64_t max_bytes = 0;       // --kv-disk-cache, of the whole directory; 0: no cache
  std::string model_identity;  // changes with the weights and with the program
  std::string label;           // the model's name, for `vllmcli cache list`
  // If false, blocks are loaded even if computing them was measured to be faster. For tests.
  bool loads_only_if_faster = true;

  bool enabled() const { return max_bytes > 0 && !directory.empty(); }
};

enum class LinearBackend : uint8_t { kNative, kOpenBlas };

// Returns the default type of the KV cache: model.dtype, except bfloat16 for float16 models with quantized weights.
// Most quantized layers round activations to 8 bits, so bfloat16 keys and values lose no visible precision, and some
// CPUs multiply bfloat16 directly.
kernels::KVDType DefaultKVDType(const ModelConfig& model);

enum class LogprobsMode : uint8_t {
  kRawLogprobs,        // of the model's own distribution
  kProcessedLogprobs,  // of the distribution that tokens are drawn from
};

struct VllmConfig {
  ModelConfig model;
  CacheConfig cache;
  SchedulerConfig scheduler;
  ParallelConfig parallel;
  LoadConfig load;
  KVDiskCacheConfig kv_disk_cache;
  StructuredOutputsConfig structured_outputs;
  SpeculativeConfig speculative;
  LoRAConfig lora;
  // The engine of the draft model, if speculative.method is kDraftModel.
  std::shared_ptr<const VllmConfig> draft;
  int64_t max_logprobs = 20;
  LogprobsMode logprobs_mode = LogprobsMode::kRawLogprobs;
  // --max-output-memory: limit for the outputs of all unfinished requests; none: see DefaultMaxOutputMemory.
  std::optional<int64_t> max_output_memory_bytes;
  // Limit for the memory of the grammars of structured outputs, see GrammarCache.
  int64_t grammar_cache_bytes = int64_t{256} << 20;
  uint64_t seed = 0;  // for requests that do not set a seed
  // OpenBLAS sums in an order that depends on the number of rows, so its results depend on batching.
  LinearBackend linear_backend = LinearBackend::kNative;
  // The instruction set of all kernels, including the sampler's; none: the best one that the CPU supports.
  std::optional<kernels::Isa> isa;

  // Returns the number of LoRA adapters whose matrices may be in memory at the same time; others are loaded when a
  // request needs them. By default, all adapters of `lora`, and at least max_loras.
  int64_t MaxCpuLoRAs() const;
  // Returns the number of LoRA adapters that are loaded with the model, which are the first ones.
  int64_t NumLoRAsLoadedAtStart() const;

  // Returns the type in which K and V are stored.
  kernels::KVDType KVCacheDType() const { return cache.cache_dtype.value_or(DefaultKVDType(model)); }

  // Checks the numeric flags against their ranges, each other and the model. Replaces a threads_per_rank of 0, and sets
  // is_oversubscribed. Without chunked prefill, raises max_num_batched_tokens to at least max_model_len. For an
  // encoder, switches chunked prefill, the prefix cache and speculation off. Throws a ConfigError that names the flag
  // and the rejected value.
  void Finalize();
};

}  // namespace vllm
