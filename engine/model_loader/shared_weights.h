// SharedWeights: the matrices that the data-parallel engines of a process share. The first engine that loads the model
// fills them, and the engines that load it afterwards use the same memory. Owned by all engines together, through
// LoadConfig. There are no locks: the first engine must be ready before the next one starts to load, and the ranks of
// an engine use different elements. The pages are on the NUMA nodes of the first engine's threads.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/model_loader/load_report.h"
#include "engine/model_loader/weight_memory.h"
#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

// The matrices of one tensor-parallel rank.
class SharedRankWeights {
 public:
  // Returns true once the rank of the first engine has loaded the model.
  bool is_complete() const { return is_complete_; }
  const LoadReport& load_report() const { return load_report_; }
  // Ends the filling. `load_report` is that of the first engine.
  void Complete(const LoadReport& load_report);

 private:
  friend class SharedWeightMemory;
  using Matrix = std::vector<std::shared_ptr<const kernels::AlignedBuffer>>;

  bool is_complete_ = false;
  LoadReport load_report_;
  std::unordered_map<std::string, std::vector<Matrix>> matrices_;  // by name, in the order in which they were loaded
};

class SharedWeights {
 public:
  // REQUIRES: num_ranks >= 1.
  explicit SharedWeights(int64_t num_ranks) : ranks_(static_cast<size_t>(num_ranks)) {}
  SharedRankWeights& rank(int rank) { return ranks_[static_cast<size_t>(rank)]; }

 private:
  std::vector<SharedRankWeights> ranks_;
};

// The WeightMemory of a rank whose engine shares its weights. While the rank's weights are incomplete, it takes memory
// from `source` and records it. Afterwards it returns the recorded matrices, which are filled, and does not use
// `source`, which may be null. Owned by the worker's constructor; used on the rank's thread.
class SharedWeightMemory final : public WeightMemory {
 public:
  // Borrows both.
  SharedWeightMemory(SharedRankWeights& shared, WeightMemory* source);

  kernels::BufferSource Buffers(const std::string& name) override;
  bool Contains(const std::string& name, const std::vector<size_t>& sizes) const override;
  kernels::BufferSource TemporaryBuffers() override;

 private:
  // Takes new memory from `buffers` and records it.
  std::vector<kernels::AlignedBuffer> Record(const std::string& name, const std::vector<size_t>& sizes,
                                             const kernels::BufferSource& buffers);
  // Returns the next unused matrix of that name; null if there is none, or if it has other sizes.
  const SharedRankWeights::Matrix* Next(const std::string& name, const std::vector<size_t>& sizes) const;
  std::vector<kernels::AlignedBuffer> Take(const std::string& name, const std::vector<size_t>& sizes);

  SharedRankWeights& shared_;
  WeightMemory* source_;
  std::unordered_map<std::string, size_t> num_used_;  // matrices of each name that Take has returned
};

}  // namespace vllm
