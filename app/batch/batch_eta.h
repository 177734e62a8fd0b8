// BatchEta: estimates the time that a batch still needs, by tokens: rows differ in length. Owned by BatchLive; main
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "engine/request/engine_core_request.h"

namespace vllm::app {

struct BatchWork {
  int64_t num_done_rows = 0;
  double num_rows = 0;               // of the whole input, or an estimate
  int64_t num_done_row_tokens = 0;   // prompt and output tokens of the done rows
  int64_t num_processed_tokens = 0;  // computed or cached, of all rows, also of those that run
  bool is_paused = false;
};

class BatchEta {
 public:
  // Nothing is estimated before this time and this share of the rows.
  static constexpr std::chrono::seconds kMinTime{10};
  static constexpr double kMinShare = 0.02;

  explicit BatchEta(SteadyTime start) : last_time_(start) {}

  // Takes the state of the batch. Time while it is paused does not count.
  void Update(SteadyTime now, const BatchWork& work);
  // Returns the time left as of the last Update. It is never negative and never grows. nullopt: not known yet.
  std::optional<Seconds> time_left() const { return time_left_; }

 private:
  SteadyTime last_time_;
  int64_t last_tokens_ = 0;
  Seconds worked_{0};
  double rate_ = 0.0;  // tokens per second, smoothed
  std::optional<Seconds> time_left_;
};

}  // namespace vllm::app
