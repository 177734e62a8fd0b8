// SuffixProposer: proposes the tokens that most often followed the request's last tokens, in its own prompt and output
// and in the outputs of other requests. The rules are those of suffix decoding (https://arxiv.org/abs/2411.04975,
// vLLM's method "suffix"), with the MatchFinder's latest matches in place of all that a suffix tree counts. Prompts are
// only used for their own request. Owned by the Speculator; engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/config/speculative_config.h"
#include "engine/spec_decode/match_finder.h"
#include "engine/spec_decode/proposer.h"
#include "engine/spec_decode/successor_table.h"

namespace vllm {

class SuffixProposer final : public Proposer {
 public:
  // The output tokens of all requests that are kept, the oldest of which are replaced. They use about 12 bytes each.
  static constexpr int64_t kMaxGlobalTokens = int64_t{1} << 20;

  // Reads `adaptive` and the fields suffix_decoding_*.
  explicit SuffixProposer(const SpeculativeConfig& config);

  // Takes bounded time per request, and amortized O(1) for each new token.
  void Propose(std::span<const DraftRequest> requests, Drafts& drafts) override;
  void Finish(RequestId request_id, std::span<const int32_t> output_token_ids) override;

  size_t memory_bytes() const;

 private:
  struct RequestHistory {
    MatchFinder local;  // the prompt, then the output
    MatchFinder::Sequence local_sequence;
    MatchFinder::Sequence global_sequence;  // the output, in global_
    size_t num_outputs = 0;                 // output tokens that both have
    SuccessorTable successors;              // of the prompt and the output
    int32_t last_token = -1;                // the last one that `successors` knows
  };
  // Tokens that follow a match.
  struct Draft {
    std::vector<int32_t> token_ids;
    std::vector<double> shares;  // of each token among those that followed the matches and the draft before it
    double score = 0.0;          // the expected number of accepted tokens, if the shares are the probabilities
    uint32_t match_length = 0;
  };

  // Appends the request's new tokens to the histories.
  const RequestHistory& Update(const DraftRequest& request);
  void ProposeFor(const DraftRequest& request, Drafts& drafts);
  static void AddSuccessors(std::span<const int32_t> token_ids, RequestHistory& history);
  // Searches `finder`, and replaces best_ if there is a better draft.
  void ImproveDraft(const MatchFinder& finder, int64_t max_drafts);
  // Sets draft_ to the tokens that most often follow the first `num_matches` matches.
  void FollowMatches(const MatchFinder& finder, size_t num_matches, int64_t max_tokens);

  size_t max_depth_;
  double max_spec_factor_;
  double min_token_prob_;
  // With adaptive drafting, which cuts drafts that are too long: searches again after a draft as if it had been
  // accepted, and proposes the successor of the last token if there is no match.
  bool extends_drafts_;
  std::optional<MatchFinder> global_;  // the outputs of all requests, also of running ones
  std::unordered_map<RequestId, RequestHistory> histories_;

  // Scratch, kept for its memory.
  std::vector<int32_t> context_;  // the last tokens of the request
  std::vector<MatchFinder::Match> matches_;
  std::vector<MatchFinder::Position> positions_;  // the next tokens of the matches that agree with draft_
  Draft draft_;
  Draft best_;
};

}  // namespace vllm
