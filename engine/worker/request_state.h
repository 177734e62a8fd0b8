// CachedRequestState: what a rank knows about a request between steps. Owned by the rank's InputBatch; used by the
// rank's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/layers/pooling/pooler.h"
#include "engine/layers/recurrent/recurrent_sequence.h"
#include "engine/reasoning/thinking_tracker.h"
#include "engine/request/engine_core_request.h"
#include "engine/structured_output/output_constraint.h"

namespace vllm {

struct CachedRequestState {
  EngineCoreRequestPtr request;
  // The prompt, then the sampled tokens that the scheduler sent, then the drafts of the current step.
  std::vector<int32_t> token_ids;
  std::vector<std::vector<int32_t>> block_ids;  // [num_groups][num_blocks]
  // The blocks of the recurrent state, if the model has one; the tokens that it belongs to; and the last drafts.
  std::vector<int32_t> state_block_ids;
  int64_t num_state_tokens = 0;
  DraftInputs draft_inputs;
  int64_t num_computed_tokens = 0;
  int64_t num_drafts = 0;  // of the current step
  // Number of prompt positions whose logprobs were returned. If the prompt is computed again after the first token was
  // sampled, they are not returned again.
  int64_t num_prompt_logprobs = 0;
  PoolingState pooling;  // of a request with PoolingParams, on rank 0
  // Both have received the output tokens in token_ids, without the drafts. Null if the request has no
  // thinking_token_budget, or no grammar.
  std::unique_ptr<ThinkingTracker> thinking;
  std::unique_ptr<OutputConstraint> constraint;

  // Passes a token of the output to both.
  void FeedOutput(int32_t token_id) const {
    if (thinking != nullptr) thinking->Feed(token_id);
    if (constraint != nullptr) constraint->Feed(token_id);
  }

  // Returns the number of tokens without the drafts.
  int64_t num_tokens() const { return static_cast<int64_t>(token_ids.size()) - num_drafts; }
  int64_t num_prompt_tokens() const { return static_cast<int64_t>(request->prompt_token_ids.size()); }
};

}  // namespace vllm
