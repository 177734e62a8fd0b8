// PackedStore: the WeightMemory of a rank that uses the packed-weight cache. Matrices in the rank's cache file are
// mapped from it. Other matrices get new memory, are packed, and are then saved in the file for the next start. Owned
// by the worker's constructor; used on the rank's thread.
// Weights that a rank packs are on the rank's NUMA node. Pages mapped from the cache file are on the node of the thread
// that wrote or first read them. Norms and biases are always read from the checkpoint.
#pragma once

#include <cstdint>
#include <memory>
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

class PackedStore final : public WeightMemory {
 public:
  // Looks for the rank's file and verifies it on the rank's threads. The cache is not used if config.load sets
  // no cache directory or a cache size of 0, if the weights are smaller than packed_cache_min_bytes, or if they were
  // not read from files.
  // `calibration` is as in DescribeWeights.
  PackedStore(const VllmConfig& config, const WeightSource& weights, std::string_view isa, int rank,
              std::string_view calibration, ForEach for_each);

  kernels::BufferSource Buffers(const std::string& name) override;
  bool Contains(const std::string& name, const std::vector<size_t>& sizes) const override;

  // Writes the file if any matrix had to be packed, unless the file exceeds this rank's share of the cache. Returns the
  // report. REQUIRES: the model is built; not called before.
  LoadReport Finish();

 private:
  // The entries of the file that have the same name, in the order of the file.
  struct NamedEntries {
    std::vector<size_t> indexes;
    size_t num_used = 0;
  };

  std::vector<kernels::AlignedBuffer> Take(uint64_t name_hash, const std::vector<size_t>& sizes);
  // Returns true if the next unused entries with this name have these sizes.
  bool Matches(const NamedEntries& named, const std::vector<size_t>& sizes) const;
  // Returns the file's buffers for a matrix, or none if the file does not have them in these sizes.
  std::vector<kernels::AlignedBuffer> TakeMapped(uint64_t name_hash, const std::vector<size_t>& sizes);
  void WriteFile();

  std::optional<PackedCache> cache_;
  std::string description_;
  std::string key_;
  int64_t num_ranks_;
  ForEach for_each_;
  std::shared_ptr<const PackedFile> file_;  // null: all matrices are packed
  std::unordered_map<uint64_t, NamedEntries> entries_by_name_;
  std::vector<PackedEntry> entries_;  // with a cache: all buffers handed out so far, for a new file
  int64_t num_mapped_ = 0;            // how many of entries_ are mapped
  LoadReport report_;
};

}  // namespace vllm
