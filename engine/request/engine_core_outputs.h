// EngineCoreOutputs: the contents of the output queue, per request the tokens since the last poll. Deltas for a slow
// reader are merged into one entry per request, so the queue's memory is proportional to the text. Entries are reused.
// Plain values; not thread-safe.
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
  Logprobs new_logprobs;     // one position per new token, if requested
  Logprobs prompt_logprobs;  // prompt positions 1.., sent once, with the first token
  FinishReason finish_reason = FinishReason::kNone;
  std::optional<int32_t> stop_token_id;  // the id in stop_token_ids that ended the request; none for EOS
  std::string error;                     // with FinishReason::kError
  int64_t num_cached_tokens = 0;         // prompt tokens served by the prefix cache at first admission
  int64_t num_preemptions = 0;
  SteadyTime scheduled_time{};    // first admission
  SteadyTime first_token_time{};  // measured in the engine
  SteadyTime last_token_time{};

  // Resets the entry but keeps its capacity.
  void Clear();
  // Appends a later delta of the same request and takes over its finish reason, counts and times.
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
