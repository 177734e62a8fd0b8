// Communicator: how tensor-parallel ranks meet inside a layer. Each rank has its own; its members are called from that
// rank's thread, by all ranks in the same order. When a rank has failed, every member throws RankAborted instead of
// waiting for it.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace vllm {

// Another rank failed or was cancelled. Never reported: the other rank's own exception is.
class RankAborted : public std::runtime_error {
 public:
  RankAborted() : std::runtime_error("another rank failed") {}
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  // data[i] becomes ((rank 0's + rank 1's) + rank 2's) ... on every rank: the order of additions is fixed.
  virtual void AllReduce(float* data, int64_t count) = 0;
  // Returns when every rank has called it; what a rank wrote before is then seen by all.
  virtual void Barrier() = 0;
};

// One rank alone.
class SingleRankCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  void AllReduce(float* /*data*/, int64_t /*count*/) override {}
  void Barrier() override {}
};

}  // namespace vllm
