// RankGroup: N tensor-parallel ranks that run the same function at the same time, rank 0 in the caller's thread and
// each other on a thread of its own, and the barrier at which they meet. A rank that throws wakes every rank that waits
// for it.
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

namespace vllm {

class RankGroup {
 public:
  // Throws std::system_error when the machine refuses a thread.
  explicit RankGroup(int size);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int size() const { return size_; }
  // For use on that rank's thread.
  Communicator& communicator(int rank);

  // Calls f(rank) on every rank and returns when all have ended. When any threw, the group is dead: the first exception
  // is rethrown here, and so it is by every later call.
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

  const int size_;
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
  std::atomic<bool> failed_{false};
  std::vector<float*> buffers_;  // a rank's operand of the all-reduce under way

  std::mutex cause_mutex_;
  std::exception_ptr cause_;  // guarded by cause_mutex_ while ranks run

  std::vector<std::thread> threads_;
};

}  // namespace vllm
