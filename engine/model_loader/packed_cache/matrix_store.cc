#include "engine/model_loader/packed_cache/matrix_store.h"

#include <algorithm>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/config/hash.h"
#include "engine/model_loader/packed_cache/packed_key.h"

namespace vllm {

class MatrixStore::RankMemory final : public WeightMemory {
 public:
  RankMemory(MatrixStore& store, int rank)
      : store_(store),
        own_part_(store.parts_[store.num_ranks_ == 1 ? 0 : 1]),
        suffix_(store.num_ranks_ == 1 ? "" : "@" + std::to_string(rank)) {}

  kernels::BufferSource Buffers(const std::string& name) override { return From(own_part_, name + suffix_); }
  bool Contains(const std::string& name, const std::vector<size_t>& sizes) const override {
    return ContainsIn(own_part_, name + suffix_, sizes);
  }
  SharedMatrixMemory SharedBuffers(const std::string& name) override {
    Matrix& matrix = store_.MatrixAt(store_.parts_[0], name, NumUsed(name));
    return {From(store_.parts_[0], name), &matrix.claims};
  }
  bool ContainsShared(const std::string& name, const std::vector<size_t>& sizes) const override {
    return ContainsIn(store_.parts_[0], name, sizes);
  }

 private:
  size_t NumUsed(const std::string& name) const {
    const auto used = num_used_.find(name);
    return used == num_used_.end() ? 0 : used->second;
  }
  kernels::BufferSource From(Part& part, const std::string& name) {
    const size_t index = num_used_[name]++;
    return
        [this, &part, name, index](const std::vector<size_t>& sizes) { return store_.Take(part, name, index, sizes); };
  }
  bool ContainsIn(const Part& part, const std::string& name, const std::vector<size_t>& sizes) const {
    return store_.Contains(part, name, NumUsed(name), sizes);
  }

  MatrixStore& store_;
  Part& own_part_;
  std::string suffix_;
  std::unordered_map<std::string, size_t> num_used_;  // matrices of each name that this object has handed out
};

void MatrixStore::OpenCache(const VllmConfig& config, const WeightSource& weights, std::string_view isa,
                            std::string_view calibration, const ForEach& for_each) {
  const LoadConfig& load = config.load;
  if (load.packed_cache_directory.empty() || load.packed_cache_bytes == 0) return;
  if (weights.TotalBytes() < load.packed_cache_min_bytes) return;
  const std::string description = DescribeWeights(config, weights, isa, calibration);
  if (description.empty()) return;
  parts_[0].description = description;
  parts_[1].description = description + "ranks " + std::to_string(num_ranks_) + "\n";
  cache_.emplace(load.packed_cache_directory, load.packed_cache_bytes);
  OpenFile(parts_[0], for_each);
  if (num_ranks_ > 1) OpenFile(parts_[1], for_each);
}

void MatrixStore::OpenFile(Part& part, const ForEach& for_each) {
  const std::string key = HexDigest(part.description);
  LoadReport report;
  std::optional<tokenizer::RegularFile> file;
  try {
    file = cache_->OpenFile(key);
  } catch (const ModelError& error) {
    // The user must see this, because somebody else may be able to write to the directory or the file. A damaged file,
    // in contrast, is only reported in the statistics, because it is replaced without the user's help.
    report.failure = error.what();
  }
  try {
    if (file) {
      part.file = std::make_shared<const PackedFile>(std::move(*file), cache_->PathOf(key), part.description, for_each);
    }
  } catch (const ModelError& error) {
    report.rejection = error.what();
  } catch (const ResourceError& error) {
    report.rejection = error.what();
  }
  report_.Add(report);
  if (part.file == nullptr) return;
  const std::span<const PackedEntry> entries = part.file->entries();
  for (size_t i = 0; i < entries.size(); ++i) part.entries_by_name[entries[i].name_hash].push_back(i);
}

std::unique_ptr<WeightMemory> MatrixStore::MemoryOf(int rank) { return std::make_unique<RankMemory>(*this, rank); }

MatrixStore::Matrix& MatrixStore::MatrixAt(Part& part, const std::string& name, size_t index) {
  const std::lock_guard lock(mutex_);
  Matrices& matrices = part.matrices[name];
  while (matrices.size() <= index) matrices.push_back(std::make_unique<Matrix>());
  return *matrices[index];
}

std::vector<size_t> MatrixStore::FindEntries(const Part& part, const std::string& name, size_t index,
                                             const std::vector<size_t>& sizes) {
  const auto found = part.entries_by_name.find(Hash64(name));
  if (found == part.entries_by_name.end()) return {};
  // A rank has already requested the matrices of this name that come before this one.
  size_t first = 0;
  if (const auto matrices = part.matrices.find(name); matrices != part.matrices.end()) {
    for (size_t i = 0; i < index && i < matrices->second.size(); ++i) first += matrices->second[i]->buffers.size();
  }
  const std::vector<size_t>& all = found->second;
  if (first > all.size() || all.size() - first < sizes.size()) return {};
  std::vector<size_t> entries(all.begin() + static_cast<std::ptrdiff_t>(first),
                              all.begin() + static_cast<std::ptrdiff_t>(first + sizes.size()));
  const auto has_size = [&](size_t entry, size_t size) { return part.file->entries()[entry].data.size() == size; };
  return std::ranges::equal(entries, sizes, has_size) ? entries : std::vector<size_t>();
}

bool MatrixStore::Contains(const Part& part, const std::string& name, size_t index,
                           const std::vector<size_t>& sizes) const {
  const std::lock_guard lock(mutex_);
  if (!is_complete_) return !FindEntries(part, name, index, sizes).empty();
  const auto found = part.matrices.find(name);
  if (found == part.matrices.end() || found->second.size() <= index) return false;
  return std::ranges::equal(found->second[index]->buffers, sizes,
                            [](const auto& buffer, size_t size) { return buffer->size_bytes() == size; });
}

std::vector<kernels::AlignedBuffer> MatrixStore::Take(Part& part, const std::string& name, size_t index,
                                                      const std::vector<size_t>& sizes) {
  Matrix& matrix = MatrixAt(part, name, index);
  const std::lock_guard lock(mutex_);
  if (matrix.buffers.empty() && !is_complete_) {
    std::vector<kernels::AlignedBuffer> buffers;
    for (const size_t entry : FindEntries(part, name, index, sizes)) {
      const std::span<const std::byte> data = part.file->entries()[entry].data;
      buffers.emplace_back(part.file, data.data(), data.size());
    }
    matrix.is_mapped = !buffers.empty();
    if (buffers.empty()) buffers = kernels::NewBuffers(sizes);
    for (kernels::AlignedBuffer& buffer : buffers) {
      matrix.buffers.push_back(std::make_shared<const kernels::AlignedBuffer>(std::move(buffer)));
    }
  }
  const auto has_size = [](const auto& buffer, size_t size) { return buffer->size_bytes() == size; };
  // Unreachable as long as all engines have the same configuration. The matrix would be packed again.
  if (!std::ranges::equal(matrix.buffers, sizes, has_size)) return kernels::NewBuffers(sizes);
  std::vector<kernels::AlignedBuffer> shared;
  for (const auto& buffer : matrix.buffers) {
    shared.emplace_back(buffer, buffer->data(), buffer->size_bytes(), matrix.is_mapped || is_complete_);
  }
  return shared;
}

void MatrixStore::Complete(const ForEach& for_each) {
  if (is_complete_) return;
  is_complete_ = true;
  if (!cache_) return;
  int64_t bytes = 0;
  std::array<std::vector<PackedEntry>, 2> entries;
  std::array<int64_t, 2> num_packed = {};
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    bool is_used = false;
    for (const auto& [name, matrices] : part.matrices) {
      for (const std::unique_ptr<Matrix>& matrix : matrices) {
        is_used = is_used || matrix->is_mapped;
        if (!matrix->is_mapped) num_packed[i] += std::ssize(matrix->buffers);
        for (const auto& buffer : matrix->buffers) {
          entries[i].push_back({Hash64(name), {buffer->as<const std::byte>(), buffer->size_bytes()}});
        }
      }
    }
    if (is_used) report_.mapped_bytes += part.file->size_bytes();
    if (!entries[i].empty()) bytes += PackedFileBytes(part.description, entries[i]);
    if (num_packed[i] > 0 && part.file != nullptr) {
      report_.rejection = "packed weights " + Escape(cache_->PathOf(HexDigest(part.description))) + ": " +
                          std::to_string(num_packed[i]) + " of " + std::to_string(entries[i].size()) +
                          " parts are missing and were packed again";
    }
  }
  // One of two files alone would be of little use.
  if (bytes > cache_->max_bytes()) return;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (num_packed[i] > 0) WriteFile(parts_[i], entries[i], for_each);
  }
}

void MatrixStore::WriteFile(const Part& part, const std::vector<PackedEntry>& entries, const ForEach& for_each) {
  const int64_t bytes = PackedFileBytes(part.description, entries);
  try {
    cache_->Put(HexDigest(part.description), bytes, [&](int fd, const std::string& path) {
      WritePackedFile(fd, path, part.description, entries, for_each);
    });
    report_.written_bytes += bytes;
  } catch (const ModelError& error) {
    report_.failure = error.what();
  } catch (const ResourceError& error) {
    report_.failure = error.what();
  }
}

}  // namespace vllm
