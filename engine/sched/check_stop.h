// Whether the last token of a request ends it.
#pragma once

#include <cstdint>

#include "engine/request/request.h"

namespace vllm {

// Call after each appended token; sets status (and stop_token_id) and returns true when the request ends. vLLM's order:
// below min_tokens nothing ends it; then EOS, stop_token_ids, and last the length: max_tokens or max_num_tokens. Only
// max_num_tokens, the tokens that the engine can hold, ends it below min_tokens too.
bool CheckStop(Request& request, int64_t max_num_tokens);

}  // namespace vllm
