// Requests and configurations for tests that compare the results of different schedules. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "kernels/isa.h"
#include "tests/system/run_requests.h"

namespace vllm::testing_support {

struct EngineSetup {
  int64_t max_num_seqs = 128;
  int64_t max_num_batched_tokens = 2048;
  bool prefix_caching = true;
  std::optional<int64_t> num_blocks = std::nullopt;
  int64_t block_size = 16;
  int64_t ranks = 1;
  int64_t threads = 1;
  kernels::DType dtype = kernels::DType::kFloat32;
  std::optional<kernels::KVDType> cache_dtype = std::nullopt;
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  int64_t long_prefill_token_threshold = 0;
  bool reserve_full_isl = true;
  std::optional<kernels::Isa> isa = std::nullopt;
  int64_t engines = 1;
  SpeculativeConfig speculative = {};
  std::string kv_disk_cache = {};  // the directory; empty: no cache on disk
};

inline VllmConfig MakeConfig(const std::string& directory, const EngineSetup& setup) {
  VllmConfig config;
  config.model = LoadModelConfig(directory);
  config.model.dtype = setup.dtype;
  config.scheduler.max_num_seqs = setup.max_num_seqs;
  config.scheduler.max_num_batched_tokens = setup.max_num_batched_tokens;
  config.scheduler.policy = setup.policy;
  config.scheduler.long_prefill_token_threshold = setup.long_prefill_token_threshold;
  config.scheduler.scheduler_reserve_full_isl = setup.reserve_full_isl;
  config.cache.block_size = setup.block_size;
  config.cache.enable_prefix_caching = setup.prefix_caching;
  config.cache.num_blocks_override = setup.num_blocks;
  config.cache.cache_dtype = setup.cache_dtype;
  config.cache.kv_cache_memory_bytes = int64_t{64} << 20;
  config.parallel.tensor_parallel_size = setup.ranks;
  config.parallel.threads_per_rank = setup.threads;
  config.parallel.data_parallel_size = setup.engines;
  config.isa = setup.isa;
  config.speculative = setup.speculative;
  config.Finalize();
  if (!setup.kv_disk_cache.empty()) {
    config.kv_disk_cache = {.directory = setup.kv_disk_cache,
                            .max_bytes = int64_t{64} << 20,
                            .model_identity = "model",
                            .label = "",
                            .loads_only_if_faster = false};
  }
  return config;
}

// Requests with text and token prompts, stop strings, seeds, n, logprobs, penalties and shared prefixes. Token prompts
// have up to max_prompt tokens after the shared ones.
inline std::vector<TestRequest> MixedRequests(int count, int64_t max_prompt) {
  std::vector<TestRequest> requests;
  std::mt19937 random(42);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  std::vector<int32_t> shared;
  for (int i = 0; i < 50; ++i) shared.push_back(static_cast<int32_t>(pick(300, 1500)));
  const char* texts[] = {"How do I run a batch of prompts?", "What does exit status 3 mean?", "stop",
                         "Once upon a time there was a cat \xf0\x9f\x90\x88 and", "vllmcli chat"};
  for (int i = 0; i < count; ++i) {
    TestRequest request;
    request.id = "request " + std::to_string(i);
    if (i % 3 == 0) {
      request.prompt = TextPrompt{texts[static_cast<size_t>(i / 3) % std::size(texts)]};
    } else {
      std::vector<int32_t> ids;
      if (i % 3 == 1) ids = shared;
      for (int64_t n = pick(1, max_prompt); n > 0; --n) ids.push_back(static_cast<int32_t>(pick(300, 1500)));
      request.prompt = ids;
    }
    SamplingParams& params = request.params;
    params.max_tokens = pick(1, 40);
    params.temperature = i % 2 == 0 ? 0.0 : 0.9;
    params.ignore_eos = i % 5 == 0;
    if (i % 2 == 1) {
      params.seed = static_cast<uint64_t>(i);
      if (i % 4 == 1) params.n = 3;
      if (i % 6 == 3) params.top_p = 0.8;
      if (i % 6 == 5) params.top_k = 20;
      if (i % 10 == 7) params.seed.reset();
    }
    if (i % 4 == 2) params.logprobs = 3;
    if (i % 8 == 6) params.prompt_logprobs = 2;
    if (i % 7 == 0) params.stop = {"the", "model ", "."};
    if (i % 9 == 0) params.repetition_penalty = 1.2;
    if (i % 11 == 0) params.frequency_penalty = 0.5;
    request.options.priority = i % 3;
    requests.push_back(request);
  }
  return requests;
}

}  // namespace vllm::testing_support
