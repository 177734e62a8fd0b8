// RankGroup: N tensor-parallel ranks that run the same function at the same time, rank 0 in the caller's thread and
// each other on a thread of its own, and the barrier at which they meet. A rank that throws wakes every rank that waits
// for it. Owned by the executor; its thread is rank 0's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "engine/layers/communicator.h"
#include "kernels/threading/spin_wait.h"

namespace vllm {

class RankGroup {
 public:
  // `wait` as in ThreadPool. Throws std::system_error when the machine refuses a thread.
  explicit RankGroup(int world_size, WaitPolicy wait = WaitPolicy::kSpinThenSleep);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int world_size() const { return world_size_; }
  // For use on that rank's thread.
  Communicator& communicator(int rank);

  // Calls f(rank) on every rank and returns when all have ended. When a rank throws StepCancelled, the others end at
  // their next barrier and this throws StepCancelled; the group can run again. After any other exception the group is
  // dead: the first one is rethrown here and by every later call.
  template <typename F>
  void Run(F&& f) {
    using Function = std::remove_reference_t<F>;
    RunAll([](void* context, int rank) { (*static_cast<Function*>(context))(rank); }, &f);
  }

 private:
  class RankCommunicator;
  using RankFunction = void (*)(void* context, int rank);

  void RunAll(RankFunction function, void* context);
  void RunRank(int rank);
  void ThreadLoop(int rank);
  void Stop();
  void Barrier();

  // Makes the ranks that wait, or will wait, at a barrier throw RankAborted.
  void AbortBarriers();

  const int world_size_;
  const WaitPolicy wait_;
  std::vector<std::unique_ptr<RankCommunicator>> communicators_;

  // The job; written by the caller before epoch_ moves on.
  RankFunction function_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<uint32_t> num_busy_{0};
  std::atomic<bool> stop_{false};

  // The ranks' meeting point: the last to arrive moves the phase on.
  alignas(64) std::atomic<uint32_t> num_arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
  std::atomic<bool> failed_{false};     // in this run
  std::atomic<bool> cancelled_{false};  // in this run, by a rank that threw StepCancelled
  std::vector<float*> buffers_;         // a rank's operand of the all-reduce under way

  std::mutex cause_mutex_;
  std::exception_ptr cause_;  // the first failure; guarded by cause_mutex_ while ranks run

  std::vector<std::thread> threads_;
};

}  // namespace vllm
