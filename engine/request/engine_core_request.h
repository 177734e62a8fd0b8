// EngineCoreRequest: a validated request for one sequence (n = 1), as sent through the input queue. Immutable. The
// front end, the scheduler and the workers share it through shared_ptr<const>; any thread.
//
// A request with beam_width returns beam_width sequences. The ids from request_id to request_id + beam_width - 1 belong
// to it. Its outputs come at the end, one for each of these ids, in descending order of their scores. If there are
// fewer sequences, the others end with FinishReason::kLength and without a token. To abort it, abort any of the ids.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request/pooling_params.h"
#include "engine/request/request_id.h"
#include "engine/request/sampling_params.h"

namespace vllm {

struct CompiledGrammar;
struct ReasoningFormat;

using SteadyTime = std::chrono::steady_clock::time_point;
using Seconds = std::chrono::duration<double>;

struct EngineCoreRequest {
  RequestId request_id = 0;
  std::vector<int32_t> prompt_token_ids;        // at least one, all in the vocabulary
  std::vector<int32_t> prior_output_token_ids;  // the first output tokens, see RequestOptions; fewer than max_tokens
  SamplingParams sampling_params;               // normalized; max_tokens set; seed set
  // If set, the request samples no token, and ends when its prompt is computed.
  std::optional<PoolingParams> pooling_params;
  std::vector<int32_t> token_type_ids;  // of the prompt's tokens, each below type_vocab_size; empty: all 0
  SteadyTime arrival_time;
  int64_t priority = 0;    // with SchedulingPolicy::kPriority, requests with smaller values run first
  std::string cache_salt;  // part of the hash of the first block
  // The LoRA adapter: its index in VllmConfig::lora.adapters and its digest. -1 and "": none.
  int32_t lora_slot = -1;
  std::string lora_digest;
  bool interactive = false;  // see RequestOptions
  // The caller's id, for viewers. The sequences of one request share it.
  std::string external_req_id;
  // Null unless the parameters have a thinking_token_budget, or structured_outputs with a model that may think.
  std::shared_ptr<const ReasoningFormat> reasoning_format;
  std::shared_ptr<const CompiledGrammar> grammar;  // null unless the parameters have structured_outputs
};

// Returns the number of sequences, whose ids begin with request_id.
inline int64_t NumSequences(const EngineCoreRequest& request) {
  return request.sampling_params.use_beam_search ? *request.sampling_params.beam_width : 1;
}

// Returns the data other than tokens that is hashed into the first block of a request: the cache salt and the digest of
// the adapter, because the keys and values of a token depend on both. Different pairs give different strings.
inline std::string BlockExtraKeys(const EngineCoreRequest& request) {
  // A zero byte starts each encoding except that of a salt without an adapter, unless the salt starts with one itself.
  if (!request.lora_digest.empty()) return std::string("\0lora", 5) + request.lora_digest + request.cache_salt;
  if (request.cache_salt.starts_with('\0')) return std::string("\0salt", 5) + request.cache_salt;
  return request.cache_salt;
}

using EngineCoreRequestPtr = std::shared_ptr<const EngineCoreRequest>;

}  // namespace vllm
