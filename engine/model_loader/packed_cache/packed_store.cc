#include "engine/model_loader/packed_cache/packed_store.h"

#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/config/hash.h"
#include "engine/model_loader/packed_cache/packed_key.h"

namespace vllm {

PackedStore::PackedStore(const VllmConfig& config, const WeightSource& weights, std::string_view isa, int rank,
                         std::string_view calibration, ForEach for_each)
    : num_ranks_(config.parallel.tensor_parallel_size), for_each_(std::move(for_each)) {
  const LoadConfig& load = config.load;
  if (load.packed_cache_directory.empty() || load.packed_cache_bytes == 0) return;
  if (weights.TotalBytes() < load.packed_cache_min_bytes) return;
  description_ = DescribeWeights(config, weights, isa, rank, calibration);
  if (description_.empty()) return;
  key_ = HexDigest(description_);
  cache_.emplace(load.packed_cache_directory, load.packed_cache_bytes);
  std::optional<tokenizer::RegularFile> file;
  try {
    file = cache_->OpenFile(key_);
  } catch (const ModelError& error) {
    // The user must see this, because somebody else may be able to write to the directory or the file. A damaged file,
    // in contrast, is only reported in the statistics, because it is replaced without the user's help.
    report_.failure = error.what();
  }
  if (!file) return;
  try {
    file_ = std::make_shared<const PackedFile>(std::move(*file), cache_->PathOf(key_), description_, for_each_);
  } catch (const ModelError& error) {
    report_.rejection = error.what();
  } catch (const ResourceError& error) {
    report_.rejection = error.what();
  }
  if (file_ == nullptr) return;
  const std::span<const PackedEntry> entries = file_->entries();
  for (size_t i = 0; i < entries.size(); ++i) entries_by_name_[entries[i].name_hash].indexes.push_back(i);
}

bool PackedStore::Matches(const NamedEntries& named, const std::vector<size_t>& sizes) const {
  if (named.indexes.size() - named.num_used < sizes.size()) return false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (file_->entries()[named.indexes[named.num_used + i]].data.size() != sizes[i]) return false;
  }
  return true;
}

bool PackedStore::Contains(const std::string& name, const std::vector<size_t>& sizes) const {
  const auto found = entries_by_name_.find(Hash64(name));
  return found != entries_by_name_.end() && Matches(found->second, sizes);
}

kernels::BufferSource PackedStore::Buffers(const std::string& name) {
  const uint64_t name_hash = Hash64(name);
  return [this, name_hash](const std::vector<size_t>& sizes) { return Take(name_hash, sizes); };
}

std::vector<kernels::AlignedBuffer> PackedStore::TakeMapped(uint64_t name_hash, const std::vector<size_t>& sizes) {
  const auto found = entries_by_name_.find(name_hash);
  if (found == entries_by_name_.end() || !Matches(found->second, sizes)) return {};
  NamedEntries& named = found->second;
  std::vector<kernels::AlignedBuffer> buffers;
  buffers.reserve(sizes.size());
  for (const size_t size : sizes) {
    buffers.emplace_back(file_, file_->entries()[named.indexes[named.num_used++]].data.data(), size);
  }
  return buffers;
}

std::vector<kernels::AlignedBuffer> PackedStore::Take(uint64_t name_hash, const std::vector<size_t>& sizes) {
  std::vector<kernels::AlignedBuffer> buffers = TakeMapped(name_hash, sizes);
  num_mapped_ += static_cast<int64_t>(buffers.size());
  if (buffers.empty()) buffers = kernels::NewBuffers(sizes);
  if (!cache_) return buffers;
  for (const kernels::AlignedBuffer& buffer : buffers) {
    entries_.push_back({name_hash, {buffer.as<const std::byte>(), buffer.size_bytes()}});
  }
  return buffers;
}

LoadReport PackedStore::Finish() {
  const int64_t num_packed = static_cast<int64_t>(entries_.size()) - num_mapped_;
  if (num_mapped_ > 0) report_.mapped_bytes = file_->size_bytes();
  if (cache_ && num_packed > 0) {
    if (file_ != nullptr) {
      report_.rejection = "packed weights " + Escape(cache_->PathOf(key_)) + ": " + std::to_string(num_packed) +
                          " of " + std::to_string(entries_.size()) + " parts are missing and were packed again";
    }
    WriteFile();
  }
  entries_.clear();
  return report_;
}

void PackedStore::WriteFile() {
  const int64_t bytes = PackedFileBytes(description_, entries_);
  // The files of the other ranks must fit too: one rank's file alone is useless.
  if (bytes > cache_->max_bytes() / num_ranks_) return;
  try {
    cache_->Put(key_, bytes,
                [&](int fd, const std::string& path) { WritePackedFile(fd, path, description_, entries_, for_each_); });
    report_.written_bytes = bytes;
  } catch (const ModelError& error) {
    report_.failure = error.what();
  } catch (const ResourceError& error) {
    report_.failure = error.what();
  }
}

}  // namespace vllm
