// Request: the scheduler's state of one request, with its tokens so far, the number of computed tokens and its status.
// The prompt stays in the shared EngineCoreRequest; only sampled tokens are stored here. Owned by the Scheduler; engine
// thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/speculative_config.h"
#include "engine/request/block_hash.h"
#include "engine/request/engine_core_request.h"
#include "engine/request/logprobs.h"
#include "engine/request/request_status.h"

namespace vllm {

class BeamGroup;

class Request {
 public:
  explicit Request(EngineCoreRequestPtr core);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  RequestId id() const { return core_->request_id; }
  const EngineCoreRequestPtr& core() const { return core_; }
  const SamplingParams& params() const { return core_->sampling_params; }
  bool is_interactive() const { return core_->interactive; }
  // Returns true if the request samples no token.
  bool is_pooling() const { return core_->pooling_params.has_value(); }

  int64_t num_prompt_tokens() const { return num_prompt_tokens_; }
  int64_t num_output_tokens() const { return static_cast<int64_t>(output_token_ids_.size()); }
  int64_t num_tokens() const { return num_prompt_tokens() + num_output_tokens(); }
  std::span<const int32_t> output_token_ids() const { return output_token_ids_; }

  void AppendOutputToken(int32_t token_id) { output_token_ids_.push_back(token_id); }
  // Reserves memory for every token that the request can still sample, so that a decode step does not allocate.
  void ReserveTokens(int64_t max_model_len, int64_t block_size);

  // Returns tokens [begin, begin + count) of prompt plus output. Copies them to `scratch` only if the range contains
  // tokens of both. REQUIRES: begin + count <= num_tokens().
  std::span<const int32_t> Tokens(int64_t begin, int64_t count, std::vector<int32_t>& scratch) const;

  // Returns the hashes of the first num_blocks full blocks, and caches them.
  // REQUIRES: num_blocks * block_size <= num_tokens().
  std::span<const BlockHash> BlockHashes(int64_t num_blocks, int64_t block_size, BlockHashFunction hash_function);
  // Returns the data other than tokens that is hashed into a block: BlockExtraKeys for the first block, and nothing for
  // later blocks, whose hashes depend on it through their parents.
  std::string_view extra_keys(bool first_block) const {
    return first_block ? std::string_view(extra_keys_) : std::string_view();
  }

  // Returns true if the request may use cached blocks. A position taken from the cache is not computed, so it has no
  // logprobs and no hidden state.
  bool reads_prefix_cache() const {
    return !params().skip_reading_prefix_cache && !params().prompt_logprobs.has_value() &&
           !(is_pooling() && core_->pooling_params->needs_all_tokens);
  }

  RequestStatus status = RequestStatus::kWaiting;
  int64_t num_computed_tokens = 0;
  int64_t num_preemptions = 0;
  int64_t num_draft_tokens = 0;           // verified since the start
  int64_t num_accepted_draft_tokens = 0;  // of these
  // The prefix of the request whose tokens were in the prefix cache at the last lookup, though not all of its KV or
  // recurrent state.
  int64_t num_known_prefix_tokens = 0;
  // Positions that other requests want the recurrent state of, in the step that is being scheduled.
  std::vector<int64_t> wanted_checkpoints;
  // The tokens that the recurrent state belongs to after the last scheduled step.
  int64_t num_state_tokens = 0;
  int64_t num_cached_tokens = -1;  // prefix-cache hit of the last admission before any preemption; -1: not admitted yet
  std::optional<int32_t> stop_token_id;
  SteadyTime scheduled_time{};
  SteadyTime first_token_time{};
  SteadyTime last_token_time{};

  // The group of which this request is a beam; null: not a beam.
  BeamGroup* beam_group = nullptr;

  // The load of KV blocks that the request waits for, 0: none, and whether it started that load.
  int64_t kv_load_id = 0;
  bool leads_kv_load = false;
  RequestStatus status_before_load = RequestStatus::kWaiting;
  int64_t num_blocks_at_load = -1;  // the prefix-cache hit when the last load started; -1: there was no load

  // How much of this request the workers have received.
  bool sent_to_workers = false;
  int64_t num_output_tokens_sent = 0;
  int64_t num_blocks_sent = 0;

  // Tokens that may follow, which the next step that schedules the request verifies, and who proposed them. Until that
  // step ends, the first num_scheduled_drafts of them are being verified.
  std::vector<int32_t> spec_token_ids;
  SpeculativeMethod spec_method = SpeculativeMethod::kOff;
  int64_t num_scheduled_drafts = 0;
  void ClearDrafts() {
    spec_token_ids.clear();
    num_scheduled_drafts = 0;
  }

  // How many requests with other adapters were admitted before this one, because max_loras adapters were in use.
  int64_t num_overtaken = 0;

  // Appended chunk by chunk and returned with the first token.
  Logprobs prompt_logprobs;

  // RequestQueue's links: the neighbors in the FCFS list, or the index in the priority heap.
  Request* queue_prev = nullptr;
  Request* queue_next = nullptr;
  size_t heap_index = 0;

 private:
  EngineCoreRequestPtr core_;
  std::string extra_keys_;
  int64_t num_prompt_tokens_;
  std::vector<int32_t> output_token_ids_;
  std::vector<BlockHash> block_hashes_;
  std::vector<int32_t> scratch_;
};

}  // namespace vllm
