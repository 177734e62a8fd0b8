// Proposer: guesses the tokens that follow in running requests. A guess can never change an output, only the time that
// it takes, so a proposer may use anything, also what other requests have generated. Owned by the Speculator; engine
// thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/request_id.h"

namespace vllm {

struct SamplingParams;

// What a proposer sees of a running request, which has sampled all its tokens so far.
struct DraftRequest {
  RequestId request_id = 0;
  std::span<const int32_t> prompt_token_ids;
  std::span<const int32_t> output_token_ids;
  int64_t max_drafts = 0;                  // at least 1
  const SamplingParams* params = nullptr;  // how the next token is sampled; null: the most probable one
};

// Proposed tokens, one range per request: those of request i are token_ids[offsets[i] .. offsets[i + 1]). Reused.
struct Drafts {
  std::vector<int32_t> token_ids;
  // For each token, the proposer's estimate of the probability that it is accepted if those before it are.
  std::vector<float> probabilities;
  std::vector<size_t> offsets{0};

  void Clear() {
    token_ids.clear();
    probabilities.clear();
    offsets.assign(1, 0);
  }
  void Add(int32_t token_id, float probability) {
    token_ids.push_back(token_id);
    probabilities.push_back(probability);
  }
  // Ends the range of a request.
  void EndRequest() { offsets.push_back(token_ids.size()); }
  size_t num_requests() const { return offsets.size() - 1; }
};

class Proposer {
 public:
  virtual ~Proposer() = default;

  // Appends one range to `drafts` for each request: at most max_drafts tokens that may follow its last token. Between
  // two calls, a request only gets more output tokens.
  virtual void Propose(std::span<const DraftRequest> requests, Drafts& drafts) = 0;

  // The request has ended with these output tokens, and no call will mention it again. Called for every request that
  // Propose has seen.
  virtual void Finish(RequestId /*request_id*/, std::span<const int32_t> /*output_token_ids*/) {}
};

}  // namespace vllm
