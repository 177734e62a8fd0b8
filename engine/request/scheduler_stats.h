// SchedulerStats: the state of the scheduler after one step. A plain value that the scheduler sends with each step's
// outputs; any thread may read its copy.
#pragma once

#include <cstdint>

#include "engine/request/spec_decoding_stats.h"

namespace vllm {

struct PrefixCacheStats {
  int64_t requests = 0;  // newly admitted requests that read the cache
  int64_t queries = 0;   // tokens looked up
  int64_t hits = 0;      // tokens found

  // Returns hits / queries, 0 without queries.
  double HitRate() const { return queries > 0 ? static_cast<double>(hits) / static_cast<double>(queries) : 0.0; }
};

// KV that was copied between the KV cache and another store, such as the KV cache on disk. If a model has several
// KV-cache groups, a saved block of one counts as the tokens of a block divided by the number of groups.
struct KVTransferStats {
  int64_t num_loaded_tokens = 0;
  int64_t num_saved_tokens = 0;  // includes those that are still being written
};

struct SchedulerStats {
  int64_t step = 0;
  int64_t num_running_reqs = 0;
  int64_t num_waiting_reqs = 0;
  double kv_cache_usage = 0.0;        // fraction of KV blocks in use, 0..1, without the null block
  PrefixCacheStats prefix_cache;      // since start
  int64_t num_preemptions = 0;        // since start
  int64_t num_scheduled_tokens = 0;   // in the last step
  int64_t num_computed_tokens = 0;    // prompt and output tokens of all completed steps, without rejected drafts
  int64_t num_prompt_tokens = 0;      // the prompt tokens among these
  int64_t num_generation_tokens = 0;  // sampled tokens
  // Prompt tokens, prefix cache hits and sampled tokens of interactive requests.
  int64_t num_interactive_tokens = 0;
  bool admission_paused = false;
  SpecDecodingStats spec_decoding = {};  // since start
  KVTransferStats kv_transfer = {};      // since start
};

}  // namespace vllm
