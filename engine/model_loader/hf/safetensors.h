// SafetensorsFile: the tensors of one mapped safetensors file. ShardedSafetensors: the tensors that an index file
// distributes over several files. Owned by the code that opened them. Immutable after opening; any thread may read.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/hf/safetensors_header.h"
#include "engine/model_loader/mapped_file.h"
#include "engine/model_loader/weights.h"

namespace vllm {

class SafetensorsFile : public WeightSource {
 public:
  // Throws like MappedFile, and ModelError if the file violates the format in safetensors_header.h.
  explicit SafetensorsFile(const std::string& path);

  bool Contains(std::string_view name) const override { return Find(name) != nullptr; }
  // Also throws ModelError, naming the tensor and its type, if the type is not supported (F64, BOOL, ...).
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override;
  std::optional<std::vector<int64_t>> ShapeOf(std::string_view name) const override;
  void DropPages() const override { file_.DropPages(); }
  std::vector<std::string> Names() const override;
  std::vector<const MappedFile*> Files() const override { return {&file_}; }
  int64_t TotalBytes() const override;

 private:
  const SafetensorsEntry* Find(std::string_view name) const;

  MappedFile file_;
  std::vector<SafetensorsEntry> entries_;  // sorted by name
};

// The index file is {"weight_map": {TENSOR: FILE, ...}, ...}. FILE is a file name without a directory; the file is in
// the same directory as the index.
class ShardedSafetensors : public WeightSource {
 public:
  // Throws ModelError if the index or a shard cannot be opened or is malformed, or a listed tensor is missing from its
  // shard. Throws ResourceError if a shard cannot be mapped or the system runs out of a resource, such as file
  // descriptors.
  ShardedSafetensors(const std::string& directory, const std::string& index_name);

  bool Contains(std::string_view name) const override { return shard_of_.contains(name); }
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override;
  std::optional<std::vector<int64_t>> ShapeOf(std::string_view name) const override;
  void DropPages() const override;
  std::vector<std::string> Names() const override;
  std::vector<const MappedFile*> Files() const override;
  int64_t TotalBytes() const override;

 private:
  std::string path_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> shards_;
  std::map<std::string, const SafetensorsFile*, std::less<>> shard_of_;
};

}  // namespace vllm
