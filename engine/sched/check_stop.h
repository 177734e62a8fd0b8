// CheckStop: the conditions that end a request after a sampled token. Called by the Scheduler, which owns the request;
// engine thread only.
#pragma once

#include <cstdint>

#include "engine/request/request.h"

namespace vllm {

// Returns true and sets status (and stop_token_id) if the last token ends the request. Call it after each appended
// token. The order is vLLM's: below min_tokens nothing ends the request; then EOS, stop_token_ids, and finally the
// length (max_tokens or max_num_tokens). Unlike in vLLM, max_num_tokens, the number of tokens that fit into the engine,
// also ends a request below min_tokens.
bool CheckStop(Request& request, int64_t max_num_tokens);

}  // namespace vllm
