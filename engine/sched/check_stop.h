// CheckStop: checks whether a sampled token ends its request. Called by the Scheduler, which owns the request; engine
// thread only.
#pragma once

#include <cstdint>

#include "engine/request/request.h"

namespace vllm {

// Returns true and sets status (and stop_token_id) if the last token ends the request. Call this after each appended
// token. The order is vLLM's: a request with fewer than min_tokens output tokens continues; then the EOS token,
// stop_token_ids, and finally the length (max_tokens or max_num_tokens) are checked. Unlike in vLLM, max_num_tokens
// also ends a request with fewer than min_tokens output tokens. max_num_tokens is the lower of max_model_len and one
// token more than the KV cache can hold, because the last token needs no slot.
bool CheckStop(Request& request, int64_t max_num_tokens);

}  // namespace vllm
