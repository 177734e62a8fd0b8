// OutputConstraint: which tokens may come next in one sequence whose answer must match a grammar. The model's thinking
// is not constrained: the grammar begins with the first token of the answer. Its state is a function of the tokens, so
// it does not depend on batching or preemption. Owned by the rank's CachedRequestState; one thread at a time, except
// for ComputeMask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/reasoning/thinking_tracker.h"
#include "engine/request/engine_core_request.h"
#include "engine/structured_output/grammar_matcher.h"

namespace vllm {

class OutputConstraint {
 public:
  // Thinking of the kind kTokens is not constrained. Of other kinds, the grammar itself contains it. REQUIRES:
  // request.grammar is not null.
  explicit OutputConstraint(const EngineCoreRequest& request);
  // The copy is at the same point of the text, and independent.
  OutputConstraint(const OutputConstraint& other);
  OutputConstraint& operator=(const OutputConstraint&) = delete;

  // Adds the next token of the output. Returns false if it is not allowed, or if the grammar is so ambiguous that the
  // text exceeds a limit. In the second case, FillBitmask throws from then on.
  bool Feed(int32_t token_id);
  // Sets bit t % 32 of word t / 32 of `bitmask` if token t may come next, and clears the others. Returns false and
  // leaves `bitmask` alone if any token may come. Throws std::runtime_error if the text exceeds a limit.
  bool FillBitmask(TokenBitmask& bitmask);
  // Returns true if FillBitmask has a mask to compute.
  bool NeedsMask();
  // Computes that mask, unless FillBitmask has done so. May be called while another thread calls FillBitmask.
  void ComputeMask();
  // Returns true if the last FillBitmask allowed only stop tokens.
  bool MustStop() const { return must_stop_; }
  // Returns the token that must come next because the grammar leaves no choice, or -1; see GrammarAutomaton. Requests
  // with bad_words or allowed_token_ids are never forced, because they may not allow that token.
  int32_t ForcedToken();
  // Appends the tokens that ForcedToken would return one after the other if `token_id` came next, at most max_tokens.
  void AppendForcedAfter(int32_t token_id, size_t max_tokens, std::vector<int32_t>& forced);
  // Returns true if the answer is complete: the output may end here. Throws std::runtime_error like FillBitmask.
  bool IsComplete();

 private:
  // The token that may start a thought here, or -1.
  int32_t ThoughtStart() const;

  std::mutex mutex_;  // of FillBitmask and ComputeMask
  GrammarMatcher matcher_;
  int32_t start_id_ = -1;
  std::optional<ThinkingTracker> thinking_;
  std::string error_;  // of the matcher; empty: none
  bool may_force_ = false;
  bool must_stop_ = false;
};

}  // namespace vllm
