#include "app/live/view/live_history.h"

#include <algorithm>
#include <utility>

namespace vllm::app {

void LiveHistory::Add(const EngineSnapshot& snapshot) {
  Counters now{snapshot.time,
               snapshot.scheduler.num_prompt_tokens,
               snapshot.scheduler.num_generation_tokens,
               snapshot.scheduler.num_computed_tokens,
               snapshot.num_executed_steps,
               snapshot.step_time,
               snapshot.rank_times};
  if (last_ &&
      (now.time < last_->time || now.num_steps < last_->num_steps ||
       now.num_computed_tokens < last_->num_computed_tokens || now.rank_times.size() != last_->rank_times.size())) {
    last_.reset();
    samples_.clear();
    last_with_steps_ = {};
  }
  const Seconds elapsed = last_ ? Seconds(now.time - last_->time) : Seconds(0);
  if (last_ && elapsed <= Seconds(0)) return;
  if (last_) {
    LiveSample sample;
    sample.prompt_rate = static_cast<double>(now.num_prompt_tokens - last_->num_prompt_tokens) / elapsed.count();
    sample.generation_rate =
        static_cast<double>(now.num_generation_tokens - last_->num_generation_tokens) / elapsed.count();
    const auto num_steps = static_cast<double>(now.num_steps - last_->num_steps);
    const auto num_tokens = static_cast<double>(now.num_computed_tokens - last_->num_computed_tokens);
    sample.has_steps = num_steps > 0;
    if (sample.has_steps) {
      sample.tokens_per_step = num_tokens / num_steps;
      sample.budget_use =
          sample.tokens_per_step / static_cast<double>(std::max<int64_t>(1, snapshot.max_num_batched_tokens));
      const auto num_prompt = static_cast<double>(now.num_prompt_tokens - last_->num_prompt_tokens);
      sample.prefill_share = num_tokens > 0 ? std::min(1.0, num_prompt / num_tokens) : 0.0;
      sample.step_time = (now.step_time - last_->step_time) / num_steps;
      for (size_t i = 0; i < now.rank_times.size(); ++i) {
        sample.rank_times.push_back((now.rank_times[i] - last_->rank_times[i]) / num_steps);
      }
      last_with_steps_ = sample;
    }
    samples_.push_back(std::move(sample));
    if (samples_.size() > kMaxSamples) samples_.pop_front();
  }
  last_ = std::move(now);
}

}  // namespace vllm::app
