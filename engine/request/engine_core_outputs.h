// EngineCoreOutputs: the engine's outputs for the front end. Each entry has the tokens that one request sampled in a
// step or, in the output queue, since the front end last read the queue. The queue merges unread entries of a request
// into one, so its memory is proportional to the number of unread tokens. Entries are reused. Plain values; not
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/request/engine_core_request.h"
#include "engine/request/finish_reason.h"
#include "engine/request/logprobs.h"
#include "engine/request/scheduler_stats.h"

namespace vllm {

struct EngineCoreOutput {
  RequestId request_id = 0;
  std::vector<int32_t> new_token_ids;
  Logprobs new_logprobs;      // one position per new token, if requested
  Logprobs prompt_logprobs;   // for prompt positions 1 and later; sent once, with the first token
  std::vector<float> pooled;  // the vector or the scores of a request with PoolingParams
  FinishReason finish_reason = FinishReason::kNone;
  std::optional<int32_t> stop_token_id;  // the id in stop_token_ids that ended the request; none for eos_token_id
  std::optional<double> beam_score;      // only of a sequence that beam search found
  double cumulative_logprob = 0.0;       // of new_token_ids, with beam_score
  std::string error;                     // with FinishReason::kError
  int64_t num_cached_tokens = 0;         // prompt tokens found in the prefix cache before any preemption
  int64_t num_preemptions = 0;
  int64_t num_draft_tokens = 0;           // verified for the request since its start
  int64_t num_accepted_draft_tokens = 0;  // of these
  SteadyTime scheduled_time{};            // of the first admission
  SteadyTime first_token_time{};          // measured in the engine
  SteadyTime last_token_time{};

  // Resets the entry but keeps its capacity.
  void Clear();
  // Appends the tokens and logprobs of a later entry of the same request and copies its other fields.
  void Merge(const EngineCoreOutput& later);
};

// Entries [0, size) are valid; the others are kept for their capacity.
class EngineCoreOutputs {
 public:
  EngineCoreOutput& Add(RequestId request_id);
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  EngineCoreOutput& operator[](size_t index) { return outputs_[index]; }
  const EngineCoreOutput& operator[](size_t index) const { return outputs_[index]; }
  void Clear() { size_ = 0; }

  SchedulerStats stats;

 private:
  std::vector<EngineCoreOutput> outputs_;
  size_t size_ = 0;
};

}  // namespace vllm
