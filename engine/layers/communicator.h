// Communicator: how the tensor-parallel ranks of an engine synchronize inside a layer. Each rank has its own
// communicator, which the executor owns, and calls it from its own thread. All ranks call the same functions in the
// same order. If a rank has failed, they throw RankAborted instead of waiting for it.
// Ranks never add partial sums: a rank copies the inputs of its outputs from the other ranks (column_gather.h). So a
// sum does not depend on the number of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>

#include "kernels/matrix/packed_activations.h"

namespace vllm {

// Another rank failed or was cancelled. Never leaves the rank group, which rethrows that rank's own exception.
class RankAborted : public std::runtime_error {
 public:
  RankAborted() : std::runtime_error("another rank failed") {}
};

// The memory of one rank that other ranks read or write. Rows are the same on all ranks, columns are those of a rank.
struct PeerBuffers {
  const float* in = nullptr;  // the rank's columns, with rows in_stride floats apart
  int64_t in_stride = 0;
  float* out = nullptr;                        // all columns
  kernels::PackedActivationsView packed = {};  // scratch for the columns of all ranks; no units if it is not used
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  // Returns what every rank passed, in the order of ranks, once all ranks have called Exchange. Each rank's earlier
  // writes are then visible to all ranks. A rank may use the memory of other ranks until it calls Barrier, which must
  // come before its next Exchange.
  virtual std::span<const PeerBuffers> Exchange(const PeerBuffers& mine) = 0;
  // Returns when every rank has called Barrier. Each rank's earlier writes are then visible to all ranks.
  virtual void Barrier() = 0;
};

// The communicator of a single rank.
class SingleRankCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  std::span<const PeerBuffers> Exchange(const PeerBuffers& mine) override {
    buffers_ = mine;
    return {&buffers_, 1};
  }
  void Barrier() override {}

 private:
  PeerBuffers buffers_;
};

}  // namespace vllm
