// RequestState: the front end's state of one unfinished sequence, with the text so far, all tokens (if outputs are
// deltas, the tokens not yet returned) and the times. Owned by the OutputProcessor; front-end thread only.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/frontend/incremental_detokenizer.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/request/request_output.h"
#include "engine/structured_output/output_constraint.h"

namespace vllm {

class RequestState {
 public:
  // `tokenizer` may be null and must outlive this object. The text of `prior_output_token_ids` (see RequestOptions) is
  // not part of the output.
  RequestState(int64_t index, const SamplingParams& params, std::span<const int32_t> prompt_token_ids,
               std::span<const int32_t> prior_output_token_ids, SteadyTime arrival_time,
               const tokenizer::Tokenizer* tokenizer);

  // Follows the constraint of the output, to find out whether the answer is complete at the end. `request` has the
  // prompt, the parameters and the grammar. Returns false if the grammar does not allow the prior output tokens. Must
  // be called before Update if the parameters have structured_outputs.
  bool SetConstraint(const EngineCoreRequest& request);

  // Adds an output of the engine. Drops tokens that were sampled after a stop string. REQUIRES: !finished().
  void Update(const EngineCoreOutput& output);
  // Ends the sequence without an output of the engine, after an abort or if the engine has failed.
  void Finish(FinishReason reason);

  // Fills `output` according to the output kind; each delta is returned once. Reuses the buffers of `output`.
  void FillOutput(CompletionOutput& output);

  bool finished() const { return reason_ != FinishReason::kNone; }
  FinishReason finish_reason() const { return reason_; }
  bool has_tokens() const { return metrics_.num_generation_tokens > 0; }
  const RequestMetrics& metrics() const { return metrics_; }

 private:
  void CheckComplete(std::span<const int32_t> new_ids);

  int64_t index_;
  RequestOutputKind kind_;
  bool include_stop_;
  std::optional<IncrementalDetokenizer> detokenizer_;
  std::vector<int32_t> token_ids_;  // if outputs are deltas: since the last output; else all
  Logprobs logprobs_;               // of the tokens in token_ids_
  double cumulative_logprob_ = 0.0;
  std::optional<double> beam_score_;
  FinishReason reason_ = FinishReason::kNone;
  StopReason stop_reason_;
  RequestMetrics metrics_;
  // The whole output has a constraint. That of tool calls leaves the text around them free.
  bool is_constrained_;
  std::optional<OutputConstraint> constraint_;  // none: not constrained, or not set yet
  std::optional<bool> valid_;
};

}  // namespace vllm
