// ParentRequest: the state that the n sequences of a request share while their outputs are collected. Each sequence is
// a separate engine request, or with beam search a result of one, with the id first_child_id + index. Owned by the
// OutputProcessor; front-end thread only.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/frontend/input_processor.h"
#include "engine/request/engine_core_request.h"
#include "engine/request/prompt.h"
#include "engine/request/request_output.h"

namespace vllm {

struct ParentRequest {
  ParentRequest(std::string id, ProcessedInput input, RequestId first_child, SteadyTime arrival)
      : request_id(std::move(id)),
        params(std::move(input.params)),
        num_returned(input.num_returned),
        prompt_token_ids(std::move(input.prompt_token_ids)),
        prior_output_token_ids(std::move(input.prior_output_token_ids)),
        first_child_id(first_child),
        arrival_time(arrival) {
    finished_metrics.arrival_time = arrival;
  }

  RequestId child_id(int64_t index) const { return first_child_id + static_cast<RequestId>(index); }
  int64_t child_index(RequestId child_id) const { return static_cast<int64_t>(child_id - first_child_id); }
  // Counts a finished sequence. Returns true if it was the last.
  bool CountFinished() { return ++num_finished == params.n; }

  const std::string request_id;
  const SamplingParams params;
  const int64_t num_returned;  // of the n sequences
  const std::vector<int32_t> prompt_token_ids;
  const std::vector<int32_t> prior_output_token_ids;
  const RequestId first_child_id;
  const SteadyTime arrival_time;

  int64_t num_finished = 0;
  std::vector<CompletionOutput> collected;  // finished sequences, if one output returns all sequences
  Logprobs prompt_logprobs;                 // of the first sequence
  int64_t num_cached_tokens = 0;            // of the first sequence
  bool prompt_returned = false;
  std::string error;                // of the first sequence that failed
  RequestMetrics finished_metrics;  // of all finished sequences, see JoinMetrics
};

// Returns the engine requests of a caller's request, one for each of its n sequences, without a grammar. Sequence i
// uses the request's seed + i. Beam search is one engine request.
std::vector<std::shared_ptr<EngineCoreRequest>> FanOut(const ProcessedInput& input, const RequestOptions& options,
                                                       RequestId first_child_id, SteadyTime arrival_time);

// Merges the metrics of a sequence into `all`, the metrics of its request: keeps the earliest scheduled and first-token
// times and the latest last-token and finished times, and adds the counts.
void JoinMetrics(const RequestMetrics& child, RequestMetrics& all);

}  // namespace vllm
