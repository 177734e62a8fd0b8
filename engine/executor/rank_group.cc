#include "engine/executor/rank_group.h"

#include "engine/layers/step_context.h"
#include "kernels/threading/cancellation.h"

namespace vllm {

class RankGroup::RankCommunicator final : public Communicator {
 public:
  RankCommunicator(RankGroup& group, int rank) : group_(group), rank_(rank) {}
  int rank() const override { return rank_; }
  int world_size() const override { return group_.world_size_; }
  void Barrier() override {
    if (group_.world_size_ > 1) group_.Barrier();
  }

  // Each rank writes only its own element, and no rank writes it again before all ranks have passed the barrier after
  // Exchange. The elements outlive a rank that throws.
  std::span<const PeerBuffers> Exchange(const PeerBuffers& mine) override {
    group_.buffers_[static_cast<size_t>(rank_)] = mine;
    Barrier();
    return group_.buffers_;
  }

 private:
  RankGroup& group_;
  const int rank_;
};

RankGroup::RankGroup(int world_size, kernels::WaitPolicy wait)
    : world_size_(world_size), wait_(wait), buffers_(static_cast<size_t>(world_size)) {
  for (int rank = 0; rank < world_size; ++rank)
    communicators_.push_back(std::make_unique<RankCommunicator>(*this, rank));
  try {
    for (int rank = 1; rank < world_size; ++rank) threads_.emplace_back([this, rank] { ThreadLoop(rank); });
  } catch (...) {
    Stop();
    throw;
  }
}

RankGroup::~RankGroup() { Stop(); }

void RankGroup::Stop() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Communicator& RankGroup::communicator(int rank) { return *communicators_[static_cast<size_t>(rank)]; }

void RankGroup::RunAll(RankFunction function, void* context) {
  if (cause_) std::rethrow_exception(cause_);
  function_ = function;
  context_ = context;
  num_busy_.store(static_cast<uint32_t>(threads_.size()), std::memory_order_relaxed);
  if (!threads_.empty()) {
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
  }
  RunRank(0);
  uint32_t busy = num_busy_.load(std::memory_order_acquire);
  while (busy != 0) busy = kernels::WaitWhileEqual(num_busy_, busy, wait_);
  if (cause_) std::rethrow_exception(cause_);
  if (!cancelled_.load(std::memory_order_relaxed)) return;
  // All ranks have ended, so no thread waits at the barrier and it can be reset.
  cancelled_.store(false, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  num_arrived_.store(0, std::memory_order_relaxed);
  throw kernels::StepCancelled();
}

void RankGroup::RunRank(int rank) {
  try {
    function_(context_, rank);
  } catch (const RankAborted&) {
    // The rank that ended the run has recorded why.
  } catch (const kernels::StepCancelled&) {
    cancelled_.store(true, std::memory_order_relaxed);
    AbortBarriers();
  } catch (...) {
    {
      const std::lock_guard lock(cause_mutex_);
      if (!cause_) cause_ = std::current_exception();
    }
    AbortBarriers();
  }
}

void RankGroup::AbortBarriers() {
  failed_.store(true, std::memory_order_release);
  phase_.fetch_add(1, std::memory_order_release);
  phase_.notify_all();
}

void RankGroup::ThreadLoop(int rank) {
  uint32_t seen = 0;
  for (;;) {
    seen = kernels::WaitWhileEqual(epoch_, seen, wait_);
    if (stop_.load(std::memory_order_relaxed)) return;
    RunRank(rank);
    if (num_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) num_busy_.notify_one();
  }
}

void RankGroup::Barrier() {
  // Read the phase before the failure flag. A failure after this read advances the phase, so the wait below ends.
  const uint32_t phase = phase_.load(std::memory_order_acquire);
  if (failed_.load(std::memory_order_acquire)) throw RankAborted();
  if (num_arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(world_size_)) {
    num_arrived_.store(0, std::memory_order_relaxed);
    phase_.fetch_add(1, std::memory_order_release);
    phase_.notify_all();
  } else {
    kernels::WaitWhileEqual(phase_, phase, wait_);
  }
  if (failed_.load(std::memory_order_acquire)) throw RankAborted();
}

}  // namespace vllm
