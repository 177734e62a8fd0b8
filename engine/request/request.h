// Request: the scheduler's view of one request: its tokens so far, how many of them are computed, and where it stands.
// Owned by the Scheduler, used on the engine's thread only. The prompt stays in the shared EngineCoreRequest; only what
// was sampled is stored here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request/block_hash.h"
#include "engine/request/engine_core_request.h"
#include "engine/request/logprobs.h"
#include "engine/request/request_status.h"

namespace vllm {

class Request {
 public:
  explicit Request(EngineCoreRequestPtr core);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  RequestId id() const { return core_->request_id; }
  const EngineCoreRequestPtr& core() const { return core_; }
  const SamplingParams& params() const { return core_->sampling_params; }

  int64_t num_prompt_tokens() const { return num_prompt_tokens_; }
  int64_t num_output_tokens() const { return static_cast<int64_t>(output_token_ids_.size()); }
  int64_t num_tokens() const { return num_prompt_tokens() + num_output_tokens(); }
  std::span<const int32_t> output_token_ids() const { return output_token_ids_; }

  void AppendOutputToken(int32_t token_id) { output_token_ids_.push_back(token_id); }
  // Makes room for every token the request can still sample, so that a decode step does not allocate.
  void ReserveTokens(int64_t max_model_len, int64_t block_size);

  // Tokens [begin, begin + count) of prompt and output together; copied to `scratch` only where they straddle the two.
  // REQUIRES: begin + count <= num_tokens().
  std::span<const int32_t> Tokens(int64_t begin, int64_t count, std::vector<int32_t>& scratch) const;

  // Hashes of the first num_blocks full blocks; each is computed once. REQUIRES: num_blocks * block_size <= num_tokens.
  std::span<const BlockHash> BlockHashes(int64_t num_blocks, int64_t block_size, BlockHashFunction hash_function);
  // What enters a block's hash besides its tokens: the cache salt in the first block. The others' hashes contain it
  // through their parents'.
  std::string_view extra_keys(bool first_block) const {
    return first_block ? std::string_view(core_->cache_salt) : std::string_view();
  }

  // Whether cached blocks of other requests may be used. Not with prompt_logprobs: a position that comes from the cache
  // is not computed and so has no logprobs.
  bool reads_prefix_cache() const {
    return !params().skip_reading_prefix_cache && !params().prompt_logprobs.has_value();
  }

  RequestStatus status = RequestStatus::kWaiting;
  int64_t num_computed_tokens = 0;
  int64_t num_preemptions = 0;
  int64_t num_cached_tokens = -1;  // prefix-cache hit at first admission; -1 before
  std::optional<int32_t> stop_token_id;
  SteadyTime scheduled_time{};
  SteadyTime first_token_time{};
  SteadyTime last_token_time{};

  // What the ranks know of it.
  bool sent_to_workers = false;
  int64_t num_output_tokens_told = 0;
  int64_t num_blocks_sent = 0;

  // Collected chunk by chunk and handed out with the first token.
  Logprobs prompt_logprobs;

  // RequestQueue's links: neighbours in the FCFS list, or the place in the priority heap.
  Request* queue_prev = nullptr;
  Request* queue_next = nullptr;
  size_t heap_index = 0;

 private:
  EngineCoreRequestPtr core_;
  int64_t num_prompt_tokens_;
  std::vector<int32_t> output_token_ids_;
  std::vector<BlockHash> block_hashes_;
  std::vector<int32_t> scratch_;
};

}  // namespace vllm
