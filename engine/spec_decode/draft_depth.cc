#include "engine/spec_decode/draft_depth.h"

#include <algorithm>
#include <utility>

namespace vllm {
namespace {

// A proposer that takes less than this share of a step is not limited.
constexpr double kFreeShare = 0.01;
// A draft model computes the prompt of a new request only once, so a time per draft counts as at most this many times
// the mean.
constexpr double kMaxRatio = 2;
constexpr double kNewTimeWeight = 0.25;
// Old results lose this share of their weight with each new one. The first estimate counts as much as kPrior results.
constexpr double kDecay = 1.0 / 32;
constexpr double kPrior = 2;
constexpr double kPriorAcceptance = 0.8;
// Drafts must raise the expected rate by this factor.
constexpr double kMinGain = 1.02;
constexpr int64_t kMinPause = 128;
constexpr int64_t kMaxPause = 4096;

}  // namespace

void DraftDepth::AddTime(int64_t depth, double seconds, double plain_seconds) {
  is_free_ = plain_seconds > 0 && seconds < kFreeShare * plain_seconds;
  // The first proposal, and the first one after a pause, also computes the tokens before it.
  if (std::exchange(must_catch_up_, false)) return;
  double per_draft = seconds / static_cast<double>(std::max<int64_t>(1, depth));
  if (seconds_per_draft_ == 0) {
    seconds_per_draft_ = per_draft;
    return;
  }
  per_draft = std::min(per_draft, kMaxRatio * seconds_per_draft_);
  seconds_per_draft_ += kNewTimeWeight * (per_draft - seconds_per_draft_);
}

void DraftDepth::AddResult(bool is_accepted) {
  num_compared_ += 1 - kDecay * num_compared_;
  num_accepted_ += (is_accepted ? 1 : 0) - kDecay * num_accepted_;
}

int64_t DraftDepth::BestDepth(int64_t num_requests, int64_t max_depth, StepCost& step_cost) const {
  const double acceptance = (num_accepted_ + kPrior * kPriorAcceptance) / (num_compared_ + kPrior);
  double tokens = 1;  // expected per request
  double probability = 1;
  double best_rate = kMinGain * tokens / step_cost.Estimate(num_requests);
  int64_t best = 0;
  for (int64_t depth = 1; depth <= max_depth; ++depth) {
    probability *= acceptance;
    tokens += probability;
    const double seconds =
        step_cost.Estimate(num_requests * (1 + depth)) + seconds_per_draft_ * static_cast<double>(depth);
    if (tokens / seconds <= best_rate) continue;
    best_rate = tokens / seconds;
    best = depth;
  }
  return best;
}

int64_t DraftDepth::Choose(int64_t num_requests, int64_t max_depth, StepCost& step_cost) {
  if (num_steps_to_pause_ > 0) {
    if (--num_steps_to_pause_ == 0) num_trials_ = kNumTrials;
    must_catch_up_ = true;
    return 0;
  }
  if (num_trials_ > 0) {
    --num_trials_;
    return max_depth;
  }
  if (is_free_ || step_cost.Estimate(num_requests) == 0) return max_depth;
  const int64_t depth = BestDepth(num_requests, max_depth, step_cost);
  if (depth > 0) {
    pause_length_ = 0;
    return depth;
  }
  pause_length_ = std::clamp(2 * pause_length_, kMinPause, kMaxPause);
  num_steps_to_pause_ = pause_length_;
  return 0;
}

}  // namespace vllm
