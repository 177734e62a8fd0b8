// RankGroup: runs the same function on all tensor-parallel ranks at the same time and gives each a Communicator. Rank 0
// runs in the caller's thread, each other rank on its own thread. If a rank throws, the ranks that wait for it wake up
// and stop. Owned by the executor; call members from its thread only.
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
  // `wait` says how idle ranks wait, as in ThreadPool. Throws std::system_error if a thread cannot be started.
  explicit RankGroup(int world_size, kernels::WaitPolicy wait = kernels::WaitPolicy::kSpinThenSleep);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int world_size() const { return world_size_; }
  // Call members of the result only on that rank's thread.
  Communicator& communicator(int rank);

  // Calls f(rank) on every rank and returns when all ranks have ended. If a rank throws StepCancelled, the others stop
  // at their next barrier, this call throws StepCancelled, and the group can run again. After any other exception the
  // group is dead: this call and every later one rethrow the first exception.
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

  // Makes ranks that wait at a barrier, now or later, throw RankAborted.
  void AbortBarriers();

  const int world_size_;
  const kernels::WaitPolicy wait_;
  std::vector<std::unique_ptr<RankCommunicator>> communicators_;

  // The job, which the caller writes before advancing epoch_.
  RankFunction function_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<uint32_t> num_busy_{0};
  std::atomic<bool> stop_{false};

  // The barrier: the last rank to arrive advances the phase.
  alignas(64) std::atomic<uint32_t> num_arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
  std::atomic<bool> failed_{false};     // a rank threw in this run
  std::atomic<bool> cancelled_{false};  // a rank threw StepCancelled in this run
  std::vector<PeerBuffers> buffers_;    // what each rank passed to the current Exchange

  std::mutex cause_mutex_;
  std::exception_ptr cause_;  // the first failure; guarded by cause_mutex_ while ranks run

  std::vector<std::thread> threads_;
};

}  // namespace vllm
