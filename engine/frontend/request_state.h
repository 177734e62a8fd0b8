// RequestState: the front end's state of one running sequence: its text so far, the tokens not yet returned, its times.
// Owned by the OutputProcessor.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/frontend/incremental_detokenizer.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/request/request_output.h"

namespace vllm {

class RequestState {
 public:
  // `tokenizer` may be null and must outlive this.
  RequestState(int64_t index, const SamplingParams& params, std::span<const int32_t> prompt_token_ids,
               SteadyTime arrival_time, const tokenizer::Tokenizer* tokenizer);

  // Adds an output of the engine. Drops tokens that were sampled after a stop string. REQUIRES: not finished.
  void Update(const EngineCoreOutput& output);
  // Ends the sequence without the engine.
  void Finish(FinishReason reason);

  // Writes what the caller sees now, by the output kind; a delta is returned once. Reuses the buffers of `output`.
  void FillOutput(CompletionOutput& output);

  bool finished() const { return reason_ != FinishReason::kNone; }
  FinishReason finish_reason() const { return reason_; }
  bool has_tokens() const { return metrics_.num_generation_tokens > 0; }
  const RequestMetrics& metrics() const { return metrics_; }

 private:
  int64_t index_;
  RequestOutputKind kind_;
  bool include_stop_;
  std::optional<IncrementalDetokenizer> detokenizer_;
  std::vector<int32_t> token_ids_;  // delta: since the last output; otherwise all
  Logprobs logprobs_;               // as token_ids_
  double cumulative_logprob_ = 0.0;
  FinishReason reason_ = FinishReason::kNone;
  StopReason stop_reason_;
  RequestMetrics metrics_;
};

}  // namespace vllm
