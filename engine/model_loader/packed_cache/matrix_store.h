// MatrixStore: the memory of a model's matrices, which the ranks and the data-parallel engines of a process share. The
// first engine takes matrices from the packed-weight cache or packs them, and then saves them for the next start. Later
// engines use the same memory. Matrices whose layout allows it are shared by all ranks and are in a file that serves
// every tensor-parallel size. The other matrices of each rank are in a second file; with one rank, there is only one
// file. Owned by the executors together. Ranks may call RankMemory at the same time; every other call needs all ranks
// to be idle.
// A rank's threads write first to the pages of the weights that they pack, which puts these pages on their NUMA node.
// Pages mapped from a cache file are on the node of the thread that wrote or first read them. Norms and biases are
// always read from the checkpoint.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/load_report.h"
#include "engine/model_loader/packed_cache/packed_cache.h"
#include "engine/model_loader/packed_cache/packed_file.h"
#include "engine/model_loader/weight_memory.h"
#include "engine/model_loader/weights.h"
#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

class MatrixStore {
 public:
  // REQUIRES: num_ranks >= 1.
  explicit MatrixStore(int64_t num_ranks) : num_ranks_(num_ranks) {}

  // Looks for the cache files and verifies them with `for_each`. The cache is not used if config.load sets no cache
  // directory or a cache size of 0, if the weights are smaller than packed_cache_min_bytes, or if they were not read
  // from files. `calibration` is as in DescribeWeights. For the first engine, before its ranks load.
  void OpenCache(const VllmConfig& config, const WeightSource& weights, std::string_view isa,
                 std::string_view calibration, const ForEach& for_each);
  // Returns the memory with which a rank builds the model once.
  std::unique_ptr<WeightMemory> MemoryOf(int rank);
  // Returns true once the first engine has loaded the model.
  bool is_complete() const { return is_complete_; }
  // Writes the cache files if any matrix had to be packed, unless they exceed the size of the cache. Does nothing if
  // the store is complete. REQUIRES: all ranks have built the model.
  void Complete(const ForEach& for_each);
  // How the first engine loaded the weights.
  const LoadReport& load_report() const { return report_; }

 private:
  class RankMemory;

  struct Matrix {
    std::vector<std::shared_ptr<const kernels::AlignedBuffer>> buffers;
    bool is_mapped = false;
    Claims claims;
  };
  // The matrices of one name, in the order in which a rank requests them.
  using Matrices = std::vector<std::unique_ptr<Matrix>>;

  // The matrices that are in one cache file.
  struct Part {
    std::string description;                                            // empty: no cache
    std::shared_ptr<const PackedFile> file;                             // null: there is no file, or it was rejected
    std::unordered_map<uint64_t, std::vector<size_t>> entries_by_name;  // indexes in the order of the file
    std::map<std::string, Matrices> matrices;
  };

  void OpenFile(Part& part, const ForEach& for_each);
  void WriteFile(const Part& part, const std::vector<PackedEntry>& entries, const ForEach& for_each);
  Matrix& MatrixAt(Part& part, const std::string& name, size_t index);
  // Returns the indexes of the file's entries for the matrix, or none if the file does not have them in these sizes.
  static std::vector<size_t> FindEntries(const Part& part, const std::string& name, size_t index,
                                         const std::vector<size_t>& sizes);
  bool Contains(const Part& part, const std::string& name, size_t index, const std::vector<size_t>& sizes) const;
  std::vector<kernels::AlignedBuffer> Take(Part& part, const std::string& name, size_t index,
                                           const std::vector<size_t>& sizes);

  const int64_t num_ranks_;
  mutable std::mutex mutex_;  // guards the matrices of the parts
  std::optional<PackedCache> cache_;
  // The matrices of all ranks, and those of each rank. With one rank, the first part has all matrices.
  std::array<Part, 2> parts_;
  bool is_complete_ = false;
  LoadReport report_;
};

}  // namespace vllm
