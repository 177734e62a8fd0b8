// BatchLive: publishes the progress of a batch to viewers and, with --live, shows the view itself. Owned by the batch
// command; main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "app/batch/batch_eta.h"
#include "app/live/live_connection.h"
#include "app/live/live_source.h"
#include "app/live/view/live_viewer.h"
#include "engine/request/scheduler_stats.h"

namespace vllm::app {

// The state of a batch.
struct BatchProgress {
  int64_t num_done = 0;
  int64_t num_skipped = 0;  // the done rows that an earlier start of the job has finished
  int64_t num_failed = 0;
  std::optional<double> num_rows;
  bool num_rows_is_estimate = false;
  int64_t num_prompt_tokens = 0;  // of the done rows
  int64_t num_generation_tokens = 0;
  SchedulerStats stats;
};

class BatchLive {
 public:
  // Borrows `source`. With `shows_view`, enters the alternate screen; throws ResourceError.
  BatchLive(LiveSource& source, std::string input, std::string output, bool shows_view);

  bool shows_view() const { return viewer_.has_value(); }
  // Leaves the alternate screen.
  void CloseView() { viewer_.reset(); }
  void AddError(int64_t line, std::string_view message);
  // Publishes the progress, at most five times per second until all rows are done, and updates the view. Returns false
  // if the view has ended: the user has chosen in it to stop the batch, or signal_number() is not 0.
  bool Update(const BatchProgress& progress);
  // Returns the signal that has ended the view: SIGINT after Ctrl-C, SIGHUP if the terminal is gone, or one that the
  // process has received; 0 if none has.
  int signal_number() const { return signal_number_; }
  // Returns the time that the batch still needs, once it can be estimated.
  std::optional<Seconds> time_left() const { return eta_.time_left(); }
  // The descriptor of the view's keys; -1 without a view.
  int KeyFd() const { return viewer_ ? viewer_->KeyFd() : -1; }
  const std::deque<LiveError>& errors() const { return errors_; }

 private:
  void Publish(const BatchProgress& progress, SteadyTime now);

  LiveSource& source_;
  std::string input_;
  std::string output_;
  SteadyTime start_;
  SteadyTime due_{};
  BatchEta eta_;
  std::deque<LiveError> errors_;  // the last ones
  std::optional<LocalConnection> connection_;
  std::optional<LiveViewer> viewer_;
  int signal_number_ = 0;
};

}  // namespace vllm::app
