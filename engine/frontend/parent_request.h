// ParentRequest: a caller's request and the n sequences it is run as. Each child is an engine request of its own with
// seed + index; the later ones wait until the first has its prompt's KV in the prefix cache, which changes no result.
// Owned by the OutputProcessor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/frontend/input_processor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/request/engine_core_request.h"
#include "engine/request/request_output.h"

namespace vllm {

class ParentRequest {
 public:
  // Child i gets the engine id first_child_id + i. With `hold_back_later_children`,
  // only the first may enter the engine until ReleaseChildren.
  ParentRequest(std::string request_id, ProcessedInput input, const RequestOptions& options, RequestId first_child_id,
                bool hold_back_later_children);

  const std::string& request_id() const { return request_id_; }
  const SamplingParams& params() const { return input_.params; }
  const std::vector<int32_t>& prompt_token_ids() const { return input_.prompt_token_ids; }
  SteadyTime arrival_time() const { return arrival_time_; }
  int64_t n() const { return input_.params.n; }
  RequestId child_id(int64_t index) const { return first_child_id_ + static_cast<RequestId>(index); }
  int64_t child_index(RequestId child_id) const { return static_cast<int64_t>(child_id - first_child_id_); }

  // Children that may enter the engine now and have not yet.
  bool HasChildToSubmit() const { return num_submitted_ < num_allowed_; }
  EngineCoreRequestPtr MakeNextChild();
  int64_t num_submitted() const { return num_submitted_; }
  // The first child has its first token, or has ended without.
  void ReleaseChildren() { num_allowed_ = n(); }

  // Counts a child that has ended. Returns whether it was the last.
  bool CountFinished() { return ++num_finished_ == n(); }

  std::vector<CompletionOutput> collected;  // finished children's outputs, final-only
  Logprobs prompt_logprobs;                 // the first child's
  int64_t num_cached_tokens = 0;            // the first child's
  bool prompt_given_out = false;
  std::string error;                // the first child's that failed
  RequestMetrics finished_metrics;  // finished children's together

 private:
  std::string request_id_;
  ProcessedInput input_;
  RequestOptions options_;
  RequestId first_child_id_;
  SteadyTime arrival_time_;
  int64_t num_allowed_;
  int64_t num_submitted_ = 0;
  int64_t num_finished_ = 0;
};

// Joins the metrics of another child of the same request into `all`.
void JoinMetrics(const RequestMetrics& child, RequestMetrics& all);

}  // namespace vllm
