// DraftDepth: decides how many tokens per request a proposer drafts that takes noticeable time, such as a draft model.
// Each further draft costs time before it is known whether it is accepted, so the best number follows from the time per
// draft, how often drafts were accepted, and the time of steps. If even one draft does not pay, the proposer pauses.
// Owned by the Speculator; engine thread only.
#pragma once

#include <cstdint>

#include "engine/spec_decode/step_cost.h"

namespace vllm {

class DraftDepth {
 public:
  // Returns how many tokens to draft for each of num_requests requests, at most max_depth; 0: none in this step.
  // REQUIRES: num_requests > 0, max_depth > 0.
  int64_t Choose(int64_t num_requests, int64_t max_depth, StepCost& step_cost);

  // The proposer has taken `seconds` for at most `depth` drafts per request. `plain_seconds` is the estimated time of a
  // step without drafts, 0: unknown.
  void AddTime(int64_t depth, double seconds, double plain_seconds);
  // A draft was compared, after all before it had been accepted.
  void AddResult(bool is_accepted);

 private:
  int64_t BestDepth(int64_t num_requests, int64_t max_depth, StepCost& step_cost) const;

  bool is_free_ = true;  // the proposer takes so little time that it need not be limited
  double seconds_per_draft_ = 0;
  double num_compared_ = 0;  // recent results
  double num_accepted_ = 0;
  // The first proposals, and the first ones after a pause, are made without a decision, to learn what they cost and
  // gain.
  static constexpr int64_t kNumTrials = 2;
  int64_t num_trials_ = kNumTrials;
  bool must_catch_up_ = true;  // the next proposal is the first one, or the first one after a pause
  int64_t num_steps_to_pause_ = 0;
  int64_t pause_length_ = 0;  // of the last pause, in steps; 0: drafts have paid since
};

}  // namespace vllm
