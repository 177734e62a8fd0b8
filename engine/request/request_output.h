// RequestOutput: a result that the front end returns to its caller, as in vLLM's LLM.generate. A plain value, owned by
// the front end; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/request/engine_core_request.h"
#include "engine/request/finish_reason.h"
#include "engine/request/logprobs.h"

namespace vllm {

// None (EOS, length, ...), the stop token's id, or the stop string.
using StopReason = std::variant<std::monostate, int32_t, std::string>;

struct CompletionOutput {
  int64_t index = 0;
  // Text, token ids and logprobs are cumulative or deltas, depending on output_kind.
  std::string text;                 // contains only complete UTF-8 characters
  std::vector<int32_t> token_ids;   // the sampled tokens, up to the one that completes a stop string
  Logprobs logprobs;                // if requested
  double cumulative_logprob = 0.0;  // over all tokens so far, if logprobs were requested or there is a score
  std::optional<double> score;  // by which the outputs are ranked: BeamScore, or with best_of the cumulative logprob
  FinishReason finish_reason = FinishReason::kNone;
  StopReason stop_reason;
  // Once a sequence with structured_outputs has finished: whether its answer is a complete text of the constraint.
  // With the constraint of tool calls, only false: the answer ends inside a call.
  std::optional<bool> valid;
};

// Returns true if a limit, a stop string or an abort has ended the sequence, and not the model.
inline bool WasCut(const CompletionOutput& output) {
  return output.finish_reason != FinishReason::kStop || std::holds_alternative<std::string>(output.stop_reason);
}

// Times and counts of one sequence, or of all sequences of a request. A time is zero until its event happens.
struct RequestMetrics {
  SteadyTime arrival_time{};
  SteadyTime scheduled_time{};
  SteadyTime first_token_time{};
  SteadyTime last_token_time{};
  SteadyTime finished_time{};
  int64_t num_generation_tokens = 0;
  int64_t num_preemptions = 0;
  int64_t num_draft_tokens = 0;           // that speculation verified
  int64_t num_accepted_draft_tokens = 0;  // of these

  Seconds queue_time() const { return Between(arrival_time, scheduled_time); }
  Seconds time_to_first_token() const { return Between(arrival_time, first_token_time); }
  Seconds prefill_time() const { return Between(scheduled_time, first_token_time); }
  Seconds decode_time() const { return Between(first_token_time, last_token_time); }
  Seconds inter_token_latency() const {
    return num_generation_tokens > 1 ? decode_time() / static_cast<double>(num_generation_tokens - 1) : Seconds(0);
  }
  Seconds e2e_latency() const { return Between(arrival_time, finished_time); }

 private:
  static Seconds Between(SteadyTime from, SteadyTime to) { return to > from ? Seconds(to - from) : Seconds(0); }
};

struct RequestOutput {
  std::string request_id;                 // chosen by the caller
  std::vector<int32_t> prompt_token_ids;  // if outputs are deltas, only in the first one
  Logprobs prompt_logprobs;               // for prompt positions 1 and later; if outputs are deltas, only in the first
  std::vector<CompletionOutput> outputs;
  std::vector<float> pooled;  // the vector or the scores of a request with PoolingParams
  bool finished = false;
  bool rejected = false;          // the request is invalid: `error` is the text of a RequestError
  int64_t num_cached_tokens = 0;  // prompt tokens that the first sequence found in the prefix cache
  std::string error;              // with FinishReason::kError
  RequestMetrics metrics;
};

}  // namespace vllm
