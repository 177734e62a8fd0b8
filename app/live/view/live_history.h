// LiveHistory: rates over time, computed from the counters of successive frames. Owned by a viewer; one thread.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "engine/request/engine_snapshot.h"

namespace vllm::app {

// The engine's work between two snapshots.
struct LiveSample {
  double prompt_rate = 0.0;      // tokens per second, without those found in the prefix cache
  double generation_rate = 0.0;  // tokens per second
  // If no step ended in between, the following four are 0.
  double budget_use = 0.0;  // tokens of an average step, divided by max_num_batched_tokens
  double tokens_per_step = 0.0;
  double prefill_share = 0.0;       // of the computed tokens
  Seconds step_time{0};             // of an average step
  std::vector<Seconds> rank_times;  // per step, [num_ranks]
  bool has_steps = false;
};

class LiveHistory {
 public:
  static constexpr size_t kMaxSamples = 512;

  // Adds a snapshot. Snapshots of another engine, whose counters are lower, start a new history.
  void Add(const EngineSnapshot& snapshot);
  const std::deque<LiveSample>& samples() const { return samples_; }
  // Returns the last sample in which a step ended, or an empty one.
  const LiveSample& LastWithSteps() const { return last_with_steps_; }

 private:
  struct Counters {
    SteadyTime time{};
    int64_t num_prompt_tokens = 0;
    int64_t num_generation_tokens = 0;
    int64_t num_computed_tokens = 0;
    int64_t num_steps = 0;
    Seconds step_time{0};
    std::vector<Seconds> rank_times;
  };

  std::optional<Counters> last_;
  std::deque<LiveSample> samples_;
  LiveSample last_with_steps_;
};

}  // namespace vllm::app
