// BeamGroup: the state of one request with beam search. Each live beam is a Request of the Scheduler with its own block
// tables, which share the blocks of common prefixes. Owned by the Scheduler; engine thread only.
//
// Beam requests have the ids first_id() to first_id() + width - 1, which the front end reserves. The first one, the
// seed, computes the prompt. All beams have the same number of tokens. A beam whose logits are computed waits until
// those of all beams are, so beams may be computed in different steps.
//
// If the group is preempted, all beams lose their blocks. Their tokens are parked. A new seed computes the prompt
// again, and the parked beams continue from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/request/engine_core_request.h"
#include "engine/request/logprobs.h"
#include "engine/request/request.h"
#include "engine/sched/beam_search.h"

namespace vllm {

struct Beam {
  Request* request = nullptr;
  double cumulative_logprob = 0.0;
  bool has_top = false;
  Logprobs top = {};  // if has_top: the most probable next tokens
};

struct ParkedBeam {
  std::vector<int32_t> token_ids;
  double cumulative_logprob = 0.0;
};

class BeamGroup {
 public:
  // max_tokens: the number of generated tokens after which the search ends.
  BeamGroup(EngineCoreRequestPtr request, int64_t max_tokens);

  const EngineCoreRequestPtr& core() const { return core_; }
  const SamplingParams& params() const { return core_->sampling_params; }
  RequestId first_id() const { return core_->request_id; }
  size_t width() const { return static_cast<size_t>(*params().beam_width); }
  int64_t max_tokens() const { return max_tokens_; }
  int64_t num_prompt_tokens() const { return static_cast<int64_t>(core_->prompt_token_ids.size()); }
  int64_t num_parked_tokens() const { return parked.empty() ? 0 : static_cast<int64_t>(parked[0].token_ids.size()); }

  Beam* Find(const Request& request);
  bool IsComplete() const;  // the logits of all beams are computed
  // Adds the sequences that `selection` completes, and with `is_last` its beams, to the results. REQUIRES:
  // IsComplete().
  void AddResults(const BeamSelection& selection, bool is_last);
  // Chooses what continues the beams. The result is valid until the next call. REQUIRES: IsComplete().
  const BeamSelection& Select();
  // Returns an engine request for a beam with these output tokens. `slot` is less than width().
  EngineCoreRequestPtr MakeCore(size_t slot, std::vector<int32_t> output_token_ids) const;
  // Returns the lowest slot whose id no beam has.
  size_t FreeSlot() const;

  std::vector<Beam> beams;         // the best first; not empty; without a request while a fork has not started
  std::vector<ParkedBeam> parked;  // if not empty, beams has only the seed
  std::vector<BeamHypothesis> results;
  int64_t num_preemptions = 0;
  int64_t num_cached_tokens = 0;
  SteadyTime scheduled_time{};
  SteadyTime first_token_time{};

 private:
  void AddResult(const BeamCandidate& candidate, bool is_completed);

  EngineCoreRequestPtr core_;
  int64_t max_tokens_;
  std::vector<int32_t> end_token_ids_;
  std::vector<BeamRow> rows_;
  BeamSelection selection_;
};

}  // namespace vllm
