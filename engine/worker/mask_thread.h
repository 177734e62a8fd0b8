// MaskThread: a thread that computes masks of structured output while the forward pass runs. Sampling computes the
// masks that it has not reached, so it changes no result. Owned by the Executor and used by rank 0's thread only.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/structured_output/output_constraint.h"

namespace vllm {

class MaskThread {
 public:
  // Throws std::system_error if the thread cannot be created.
  MaskThread();
  ~MaskThread();
  MaskThread(const MaskThread&) = delete;
  MaskThread& operator=(const MaskThread&) = delete;

  // Begins to compute the masks of `constraints` in order. Until Finish, only their FillBitmask may be called.
  // REQUIRES: Finish has returned since the last Start.
  void Start(const std::vector<OutputConstraint*>& constraints);
  // Waits for the mask that is being computed, and gives up those after it.
  void Finish();

 private:
  void Run();

  std::mutex mutex_;  // protects everything below except thread_
  std::condition_variable changed_;
  std::vector<OutputConstraint*> constraints_;  // those that have not begun are [next_, size)
  size_t next_ = 0;
  bool is_computing_ = false;
  bool must_exit_ = false;
  std::thread thread_;
};

}  // namespace vllm
