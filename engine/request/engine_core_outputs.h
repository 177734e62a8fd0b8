// What crosses the output queue: per request, the tokens since the last look. Objects are reused; a slow reader's
// deltas merge into one entry a request, so that the queue costs memory in proportion to text.
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
  Logprobs new_logprobs;     // one position a new token, when asked for
  Logprobs prompt_logprobs;  // positions 1.. of the prompt, once, with the first token
  FinishReason finish_reason = FinishReason::kNone;
  std::optional<int32_t> stop_token_id;  // the id of stop_token_ids that ended it; none for EOS
  std::string error;                     // with FinishReason::kError
  int64_t num_cached_tokens = 0;         // prompt tokens served by the prefix cache at first admission
  int64_t num_preemptions = 0;
  SteadyTime scheduled_time{};    // first admission
  SteadyTime first_token_time{};  // engine-side
  SteadyTime last_token_time{};

  // Makes the entry as new but keeps its capacity.
  void Clear();
  // Appends a later delta of the same request.
  void Merge(const EngineCoreOutput& later);
};

// Entries [0, size) are live; the rest are kept for their capacity.
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
