// Communicator: collective operations of the tensor-parallel ranks inside a layer. Each rank has its own communicator,
// which the executor owns, and calls it from its own thread. All ranks call the same collectives in the same order. If
// a rank has failed, AllReduce and Barrier throw RankAborted instead of waiting for it.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace vllm {

// Another rank failed or was cancelled. Never leaves the rank group, which rethrows that rank's own exception.
class RankAborted : public std::runtime_error {
 public:
  RankAborted() : std::runtime_error("another rank failed") {}
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  // Replaces data[i] on every rank with the sum of all ranks' data[i]. The order of additions is fixed: ((rank 0 +
  // rank 1) + rank 2) ... REQUIRES: `count` is the same on every rank.
  virtual void AllReduce(float* data, int64_t count) = 0;
  // Returns when every rank has called Barrier. Each rank's earlier writes are then visible to all ranks.
  virtual void Barrier() = 0;
};

// The communicator of a single rank: every operation is a no-op.
class SingleRankCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  void AllReduce(float* /*data*/, int64_t /*count*/) override {}
  void Barrier() override {}
};

}  // namespace vllm
