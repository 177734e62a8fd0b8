// FrontendMetrics: counts and latency distributions of finished requests since start, after vLLM's request metrics.
// Owned by the OutputProcessor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/request/request_output.h"

namespace vllm {

// A histogram of durations from a microsecond to a day. Buckets grow by 10 %, so percentiles are within 10 %.
class DurationHistogram {
 public:
  void Add(Seconds duration);
  int64_t count() const { return count_; }
  Seconds sum() const { return sum_; }
  Seconds mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : Seconds(0); }
  Seconds max() const { return max_; }
  // Returns the upper bound of the bucket that contains the given share (0 to 1) of all durations; 0 if there are none.
  Seconds Percentile(double share) const;

 private:
  static constexpr size_t kNumBuckets = 266;
  std::array<int64_t, kNumBuckets> buckets_{};
  int64_t count_ = 0;
  Seconds sum_{0};
  Seconds max_{0};
};

struct FrontendMetrics {
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  int64_t num_generation_tokens = 0;
  std::array<int64_t, kNumFinishReasons> num_finished{};  // sequences by FinishReason
  DurationHistogram queue_time;
  DurationHistogram time_to_first_token;
  DurationHistogram inter_token_latency;
  DurationHistogram e2e_latency;

  void RecordFinished(FinishReason reason, const RequestMetrics& metrics);
};

}  // namespace vllm
