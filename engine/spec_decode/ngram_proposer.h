// NgramProposer: proposes the tokens that followed the request's last tokens the first time that these occurred in its
// prompt and output, with the rules of vLLM's NgramProposer. Owned by the Speculator; engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/spec_decode/proposer.h"

namespace vllm {

class NgramProposer final : public Proposer {
 public:
  // Looks for the last n tokens with the largest n in [min_n, max_n] that occur earlier. REQUIRES: 1 <= min_n <= max_n.
  NgramProposer(int64_t min_n, int64_t max_n) : min_n_(min_n), max_n_(max_n) {}

  // Takes time in proportion to the tokens of the requests.
  void Propose(std::span<const DraftRequest> requests, Drafts& drafts) override;

 private:
  void ProposeFor(const DraftRequest& request, Drafts& drafts);

  int64_t min_n_;
  int64_t max_n_;
  std::vector<int64_t> failure_;  // [<= max_n]: the failure function of the reversed tokens, as in Knuth-Morris-Pratt
};

}  // namespace vllm
