// PackedStore: where a rank's packed weights take their memory from while the model is built: from the packed cache's
// file, filled, or else new, to be packed into and then kept in the cache. The order in which a model asks is always
// the same. Made and used on the rank's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/packed_cache/packed_cache.h"
#include "engine/model_loader/packed_cache/packed_file.h"
#include "engine/model_loader/weights.h"
#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

// What the packed cache did for a rank, or for all of them.
struct PackedCacheUse {
  int64_t mapped_bytes = 0;   // read from it
  int64_t written_bytes = 0;  // kept in it for the next start
  std::string refusal;        // why a file that was there was not used; else empty
  std::string failure;        // why the cache must not be trusted or could not be written; else empty

  void Add(const PackedCacheUse& other);
};

class PackedStore {
 public:
  // Looks for the rank's file and checks it on the rank's threads. Without a directory or for weights that are small or
  // not of files, everything is packed and nothing is kept.
  PackedStore(const VllmConfig& config, const WeightSource& weights, std::string_view isa, int rank, ForEach for_each);

  // Of the weight that is called `name`. REQUIRES: what is filled from it lives until Settle.
  BufferSource Buffers(const std::string& name);
  // Whether the next buffer is there, filled, under this name.
  bool Holds(const std::string& name) const;

  // After the model is built. False: the cache's file was of another model, and this one has to be built again, from
  // this store, which has forgotten the file. Else writes what was packed to the cache.
  bool Settle();

  const PackedCacheUse& use() const { return use_; }

 private:
  AlignedBuffer Take(uint64_t name_hash, size_t size_bytes);
  void Keep();

  std::optional<PackedCache> cache_;
  std::string description_;
  std::string key_;
  int64_t num_ranks_;
  ForEach for_each_;
  std::shared_ptr<const PackedFile> file_;  // null: packing
  size_t num_taken_ = 0;                    // of the file's entries
  bool mismatch_ = false;
  std::vector<PackedEntry> packed_;  // what was given out to be filled
  PackedCacheUse use_;
};

}  // namespace vllm
