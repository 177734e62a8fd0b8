// PullDisplay: shows the progress of a download on standard error: one line that is redrawn on a terminal, elsewhere a
// line every 10 s. Shows nothing with --quiet. Owned by the caller of Pull; main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "app/hub/pull/pull_observer.h"
#include "app/terminal/progress_line.h"

namespace vllm::app {

// TransferRate: the rate of the last seconds, from a count of bytes. A value; one thread.
class TransferRate {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::seconds kWindow{10};

  // Adds a count. REQUIRES: neither `now` nor `bytes` decrease, but a smaller count starts again.
  void Add(Clock::time_point now, int64_t bytes);
  // Returns bytes per second, or nullopt before a second has passed.
  std::optional<double> BytesPerSecond() const;

 private:
  struct Sample {
    Clock::time_point time;
    int64_t bytes;
  };
  std::deque<Sample> samples_;
};

// Returns "42 %, 1.2 GB of 2.9 GB, 35.1 MB/s, 48 s left". What is unknown is left out.
std::string PullProgressText(const PullProgress& progress, std::optional<double> bytes_per_second);

class PullDisplay : public PullObserver {
 public:
  // `name` is the model's name.
  explicit PullDisplay(std::string name);

  void OnProgress(const PullProgress& progress) override;
  void OnNote(const std::string& text) override;
  int64_t received_bytes() const { return received_bytes_; }
  // Erases the line, so that something else can be printed.
  void Clear() { line_.Clear(); }

 private:
  static constexpr std::chrono::seconds kPlainInterval{10};

  std::string name_;
  ProgressLine line_;
  TransferRate rate_;
  int64_t received_bytes_ = 0;
  std::chrono::steady_clock::time_point plain_due_;
};

}  // namespace vllm::app
