// The rules of beam search, which are vLLM's: which tokens continue the beams, and how finished sequences are ranked.
// Pure functions; any thread.
//
// In each step, every beam has as candidates its 2 * width most probable tokens. A candidate that ends a sequence
// completes it, however improbable it is. Of the others, the `width` with the highest cumulative logprobs are the new
// beams. The search ends after max_tokens steps, or when no beam is left. Then the completed sequences and the beams
// are ranked by BeamScore. There is no early stopping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/logprobs.h"

namespace vllm {

// A beam that candidates continue.
struct BeamRow {
  double cumulative_logprob = 0.0;
  const Logprobs* top = nullptr;  // one position: the sampled token, which is ignored, then the most probable tokens
};

// A beam and a token that continues it.
struct BeamCandidate {
  size_t beam_index = 0;
  int32_t token_id = 0;
  double cumulative_logprob = 0.0;  // of the beam, plus the token's logprob

  friend bool operator==(const BeamCandidate&, const BeamCandidate&) = default;
};

struct BeamSelection {
  std::vector<BeamCandidate> completed;  // in the order of the beams; those of one beam in the order of their logprobs
  std::vector<BeamCandidate> live;       // the best first, at most `width`
};

// Returns the number of candidates of each beam.
constexpr int64_t NumBeamCandidates(int64_t width) { return 2 * width; }

// Replaces the contents of `selection`. Tokens in `end_token_ids` complete a sequence. Of equal candidates, that of the
// lower beam index comes first, then that with the lower token id. Candidates with a probability of 0 are dropped.
void SelectBeams(std::span<const BeamRow> rows, size_t width, std::span<const int32_t> end_token_ids,
                 BeamSelection& selection);

// Returns cumulative_logprob / num_tokens^length_penalty. num_tokens: the generated tokens, with the one that ends the
// sequence. REQUIRES: num_tokens > 0.
double BeamScore(double cumulative_logprob, int64_t num_tokens, double length_penalty);

// A finished sequence.
struct BeamHypothesis {
  std::vector<int32_t> token_ids;  // with the one that ends the sequence
  double cumulative_logprob = 0.0;
  double score = 0.0;
  bool is_completed = false;  // ended by its last token, not by a limit
};

// Adds a sequence to the best `width`, which are in descending order of their scores. Of equal ones, the earlier one
// comes first. O(width).
void AddHypothesis(BeamHypothesis hypothesis, size_t width, std::vector<BeamHypothesis>& best);

}  // namespace vllm
