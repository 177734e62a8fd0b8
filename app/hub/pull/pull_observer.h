// PullObserver: receives the progress of a download. Implemented by the caller of Pull, which calls it on its thread.
#pragma once

#include <cstdint>
#include <string>

namespace vllm::app {

struct PullProgress {
  int64_t done_bytes = 0;      // stored, including those of earlier runs
  int64_t total_bytes = 0;     // of all files of the plan that are not in the cache
  int64_t received_bytes = 0;  // over the network, in this run
  int num_done_files = 0;
  int num_files = 0;
  bool is_verifying = false;  // all bytes have arrived, and only hashes are missing
};

class PullObserver {
 public:
  virtual ~PullObserver() = default;
  // Called several times per second.
  virtual void OnProgress(const PullProgress& progress) = 0;
  // A line for the user: a wait for another process, a second attempt.
  virtual void OnNote(const std::string& text) = 0;
};

}  // namespace vllm::app
