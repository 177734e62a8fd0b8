// FrontendMetrics: token counts of all requests and latency distributions of the finished sequences since start,
// modeled on vLLM's request metrics. Owned by the OutputProcessor; front-end thread only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/request/request_output.h"

namespace vllm {

// A histogram of durations from a microsecond to a day. The upper bound of each bucket is 10 % above that of the bucket
// before it, so a quantile is at most 10 % too large.
class DurationHistogram {
 public:
  void Add(Seconds duration);
  int64_t count() const { return count_; }
  Seconds sum() const { return sum_; }
  Seconds mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : Seconds(0); }
  Seconds max() const { return max_; }
  // Returns the quantile `share` (0 to 1): the upper bound of its bucket, at most max(); 0 if there are no durations.
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
  std::array<int64_t, kNumFinishReasons> num_finished{};  // number of finished sequences by FinishReason
  DurationHistogram queue_time;
  DurationHistogram time_to_first_token;
  DurationHistogram inter_token_latency;
  DurationHistogram e2e_latency;

  void RecordFinished(FinishReason reason, const RequestMetrics& metrics);
};

}  // namespace vllm
