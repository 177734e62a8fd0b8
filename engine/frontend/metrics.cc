#include "engine/frontend/metrics.h"

#include <algorithm>
#include <cmath>

namespace vllm {
namespace {

constexpr Seconds kFirstBound{1e-6};
constexpr double kGrowth = 1.1;

}  // namespace

void DurationHistogram::Add(Seconds duration) {
  if (!(duration >= Seconds(0))) return;
  double bucket = 0.0;
  if (duration > kFirstBound) bucket = std::ceil(std::log(duration / kFirstBound) / std::log(kGrowth));
  buckets_[static_cast<size_t>(std::min(bucket, static_cast<double>(kNumBuckets - 1)))] += 1;
  count_ += 1;
  sum_ += duration;
  max_ = std::max(max_, duration);
}

Seconds DurationHistogram::Percentile(double share) const {
  const double target = share * static_cast<double>(count_);
  int64_t seen = 0;
  for (size_t i = 0; i < kNumBuckets; ++i) {
    seen += buckets_[i];
    if (seen > 0 && static_cast<double>(seen) >= target) {
      return std::min(max_, kFirstBound * std::pow(kGrowth, static_cast<double>(i)));
    }
  }
  return Seconds(0);
}

void FrontendMetrics::RecordFinished(FinishReason reason, const RequestMetrics& metrics) {
  num_finished[static_cast<size_t>(reason)] += 1;
  if (metrics.scheduled_time != SteadyTime{}) queue_time.Add(metrics.queue_time());
  if (metrics.num_generation_tokens > 0) time_to_first_token.Add(metrics.time_to_first_token());
  if (metrics.num_generation_tokens > 1) inter_token_latency.Add(metrics.inter_token_latency());
  e2e_latency.Add(metrics.e2e_latency());
}

}  // namespace vllm
