#include "app/batch/batch_eta.h"

#include <algorithm>
#include <cmath>

namespace vllm::app {
namespace {

// The weight of a measurement falls to 1/e in this time.
constexpr Seconds kSmoothing{15};

}  // namespace

void BatchEta::Update(SteadyTime now, const BatchWork& work) {
  const Seconds elapsed = now - last_time_;
  if (elapsed <= Seconds(0)) return;
  const auto num_tokens = static_cast<double>(work.num_processed_tokens - last_tokens_);
  last_time_ = now;
  last_tokens_ = work.num_processed_tokens;
  if (work.is_paused) return;
  worked_ += elapsed;
  const double rate = std::max(0.0, num_tokens) / elapsed.count();
  // Until kSmoothing has passed, this is the mean of all measurements.
  const double weight = std::max(1.0 - std::exp(-elapsed / kSmoothing), std::min(1.0, elapsed / worked_));
  rate_ += weight * (rate - rate_);

  if (worked_ < kMinTime || work.num_done_rows <= 0 || work.num_rows <= 0 || rate_ <= 0) return;
  if (static_cast<double>(work.num_done_rows) < kMinShare * work.num_rows) return;
  const double tokens_per_row = static_cast<double>(work.num_done_row_tokens) / static_cast<double>(work.num_done_rows);
  const double left = std::max(0.0, tokens_per_row * work.num_rows - static_cast<double>(work.num_processed_tokens));
  const Seconds estimate(left / rate_);
  time_left_ = time_left_ ? std::min(*time_left_, estimate) : estimate;
}

}  // namespace vllm::app
