#include "engine/model_loader/packed_cache/packed_store.h"

#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/config/errors.h"
#include "engine/model_loader/packed_cache/packed_key.h"

namespace vllm {
namespace {

uint64_t HashOf(const std::string& name) { return XXH3_64bits(name.data(), name.size()); }

}  // namespace

void PackedCacheUse::Add(const PackedCacheUse& other) {
  mapped_bytes += other.mapped_bytes;
  written_bytes += other.written_bytes;
  if (refusal.empty()) refusal = other.refusal;
  if (failure.empty()) failure = other.failure;
}

PackedStore::PackedStore(const VllmConfig& config, const WeightSource& weights, std::string_view isa, int rank,
                         ForEach for_each)
    : num_ranks_(config.parallel.tensor_parallel_size), for_each_(std::move(for_each)) {
  const LoadConfig& load = config.load;
  if (load.packed_cache_directory.empty() || load.packed_cache_bytes == 0) return;
  if (weights.TotalBytes() < load.packed_cache_min_bytes) return;
  description_ = DescribeWeights(config, weights, isa, rank);
  if (description_.empty()) return;
  key_ = HexDigest(description_);
  cache_.emplace(load.packed_cache_directory, load.packed_cache_bytes);
  std::optional<RegularFile> file;
  try {
    file = cache_->OpenFile(key_);
  } catch (const ModelError& error) {
    // Unlike damage, this is something that the user has to look at.
    use_.failure = error.what();
  }
  if (!file) return;
  try {
    file_ = std::make_shared<const PackedFile>(std::move(*file), cache_->PathOf(key_), description_, for_each_);
  } catch (const ModelError& error) {
    use_.refusal = error.what();
  } catch (const ResourceError& error) {
    use_.refusal = error.what();
  }
}

bool PackedStore::Holds(const std::string& name) const {
  if (file_ == nullptr || mismatch_ || num_taken_ >= file_->entries().size()) return false;
  return file_->entries()[num_taken_].name_hash == HashOf(name);
}

BufferSource PackedStore::Buffers(const std::string& name) {
  const uint64_t name_hash = HashOf(name);
  return [this, name_hash](size_t size_bytes) { return Take(name_hash, size_bytes); };
}

AlignedBuffer PackedStore::Take(uint64_t name_hash, size_t size_bytes) {
  if (file_ == nullptr || mismatch_) {
    AlignedBuffer buffer(size_bytes);
    if (cache_) packed_.push_back({name_hash, {buffer.as<const std::byte>(), size_bytes}});
    return buffer;
  }
  const std::span<const PackedEntry> entries = file_->entries();
  const bool fits = num_taken_ < entries.size() && entries[num_taken_].name_hash == name_hash &&
                    entries[num_taken_].data.size() == size_bytes;
  if (!fits) {
    // Whatever came before may be as wrong: the model is built to its end and then again.
    mismatch_ = true;
    return AlignedBuffer(size_bytes);
  }
  return {file_, entries[num_taken_++].data.data(), size_bytes};
}

bool PackedStore::Settle() {
  if (file_ != nullptr && (mismatch_ || num_taken_ != file_->entries().size())) {
    use_.refusal = "packed weights: refused: of another order of weights";
    file_.reset();
    mismatch_ = false;
    packed_.clear();
    return false;
  }
  if (file_ != nullptr) {
    use_.mapped_bytes = file_->size_bytes();
  } else if (cache_) {
    Keep();
  }
  packed_.clear();
  return true;
}

void PackedStore::Keep() {
  const int64_t bytes = PackedFileBytes(description_, packed_);
  // One rank's file alone is of no use.
  if (packed_.empty() || bytes > cache_->max_bytes() / num_ranks_) return;
  try {
    cache_->Put(key_, bytes,
                [&](int fd, const std::string& path) { WritePackedFile(fd, path, description_, packed_, for_each_); });
    use_.written_bytes = bytes;
  } catch (const ModelError& error) {
    use_.failure = error.what();
  } catch (const ResourceError& error) {
    use_.failure = error.what();
  }
}

}  // namespace vllm
