// DraftModelProposer: lets a small model with the same vocabulary write the next tokens. It samples them as the model
// would, with the same parameters and the same random numbers, which are a function of the seed and the position. So
// where the distributions of both models are similar, both mostly draw the same token. The small model has its own
// engine and KV cache. Its engine computes the drafts of all requests together, and finds the tokens before them in its
// prefix cache. Owned by the Speculator; engine thread only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/core/engine_core.h"
#include "engine/spec_decode/proposer.h"

namespace vllm {

class DraftModelProposer final : public Proposer {
 public:
  // Loads the draft model with `factory`. Throws like EngineCore.
  DraftModelProposer(const VllmConfig& draft, const ExecutorFactory& factory);

  // Runs steps of the draft model until all drafts are complete, which no abort interrupts. For a new request, that
  // includes its prompt. The probabilities are those of the draft model. A request that is longer than the draft
  // model's context, or has tokens outside of its vocabulary, gets no drafts.
  void Propose(std::span<const DraftRequest> requests, Drafts& drafts) override;

 private:
  struct Answer {
    std::vector<int32_t> token_ids;
    std::vector<float> probabilities;
  };

  void Add(const DraftRequest& request, size_t index);
  void Collect();

  // Returns false if the draft model does not know a token, or if the request leaves no room in its context.
  bool CanContinue(const DraftRequest& request) const;

  const int64_t vocab_size_;
  EngineCore engine_;
  RequestId last_id_ = 0;
  std::unordered_map<RequestId, size_t> indices_;  // of the requests that the draft model is answering
  std::vector<Answer> answers_;                    // [requests]
  EngineCoreOutputs outputs_;
};

}  // namespace vllm
