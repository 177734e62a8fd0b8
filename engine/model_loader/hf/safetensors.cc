#include "engine/model_loader/hf/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/json_file.h"

namespace vllm {
namespace {

// The largest published indexes list about 10^5 tensors in about 15 MB.
constexpr size_t kMaxIndexBytes = size_t{64} << 20;
constexpr size_t kMaxShards = 4096;

template <typename T>
std::string ShapeText(std::span<const T> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<kernels::WeightType> SupportedType(std::string_view name) {
  for (const kernels::WeightType type :
       {kernels::WeightType::kFloat32, kernels::WeightType::kFloat16, kernels::WeightType::kBFloat16,
        kernels::WeightType::kInt8, kernels::WeightType::kUInt8, kernels::WeightType::kInt32,
        kernels::WeightType::kInt64, kernels::WeightType::kFloat8E4M3}) {
    if (name == InfoOf(type).name) return type;
  }
  return std::nullopt;
}

bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(path), entries_(ParseSafetensors(file_.bytes(), path)) {}

const SafetensorsEntry* SafetensorsFile::Find(std::string_view name) const {
  auto it = std::lower_bound(entries_.begin(), entries_.end(), name,
                             [](const SafetensorsEntry& entry, std::string_view key) { return entry.name < key; });
  return it != entries_.end() && it->name == name ? &*it : nullptr;
}

TensorView SafetensorsFile::Get(std::string_view name, std::span<const int64_t> shape) const {
  auto fail = [&](const std::string& why) {
    throw ModelError("tensor " + Escape(name) + " of " + Escape(file_.path()) + ": " + why);
  };
  const SafetensorsEntry* entry = Find(name);
  if (entry == nullptr) fail("not in the file");
  bool same = std::equal(
      shape.begin(), shape.end(), entry->shape.begin(), entry->shape.end(),
      [](int64_t requested, uint64_t stored) { return requested >= 0 && static_cast<uint64_t>(requested) == stored; });
  if (!same) {
    fail("shape is " + ShapeText<uint64_t>(entry->shape) + " but the model needs " + ShapeText<int64_t>(shape));
  }
  const std::optional<kernels::WeightType> type = SupportedType(entry->dtype);
  if (!type) fail("dtype is not supported (" + std::string(entry->dtype) + ")");
  return {.name = std::string(name), .type = *type, .shape = {shape.begin(), shape.end()}, .data = entry->data};
}

std::optional<std::vector<int64_t>> SafetensorsFile::ShapeOf(std::string_view name) const {
  const SafetensorsEntry* entry = Find(name);
  if (entry == nullptr) return std::nullopt;
  // Only an empty tensor can have a dimension above 2^62. No model needs such a tensor, so the dimension becomes -1,
  // which matches no shape.
  std::vector<int64_t> shape;
  for (const uint64_t size : entry->shape)
    shape.push_back(size > (uint64_t{1} << 62) ? -1 : static_cast<int64_t>(size));
  return shape;
}

std::vector<std::string> SafetensorsFile::Names() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const SafetensorsEntry& entry : entries_) names.push_back(entry.name);
  return names;
}

int64_t SafetensorsFile::TotalBytes() const {
  int64_t total = 0;
  for (const SafetensorsEntry& entry : entries_) total += static_cast<int64_t>(entry.data.size());
  return total;
}

ShardedSafetensors::ShardedSafetensors(const std::string& directory, const std::string& index_name)
    : path_(directory + "/" + index_name) {
  std::string what = "tensor index " + Escape(path_);
  auto fail = [&](const std::string& why) { throw ModelError(what + ": " + why); };
  nlohmann::json index = ParseJson(ReadTextFile(path_, kMaxIndexBytes, what), what);
  if (!index.is_object() || !index.contains("weight_map")) fail("weight_map: missing");
  const nlohmann::json& weight_map = index["weight_map"];
  if (!weight_map.is_object()) fail("weight_map: not an object");
  for (const auto& [tensor, value] : weight_map.items()) {
    std::string where = "weight_map: " + Escape(tensor) + ": ";
    if (!value.is_string()) fail(where + "not a file name");
    const std::string& shard = value.get_ref<const std::string&>();
    if (!IsPlainFileName(shard)) fail(where + "not a plain file name (" + Escape(shard) + ")");
    std::unique_ptr<SafetensorsFile>& file = shards_[shard];
    if (shards_.size() > kMaxShards) fail("weight_map: too many files (limit " + std::to_string(kMaxShards) + ")");
    if (file == nullptr) file = std::make_unique<SafetensorsFile>(directory + "/" + shard);
    if (!file->Contains(tensor)) fail(where + "not in the listed file (" + Escape(shard) + ")");
    shard_of_.emplace(tensor, file.get());
  }
}

TensorView ShardedSafetensors::Get(std::string_view name, std::span<const int64_t> shape) const {
  auto it = shard_of_.find(name);
  if (it == shard_of_.end()) throw ModelError("tensor " + Escape(name) + " of " + Escape(path_) + ": not in the index");
  return it->second->Get(name, shape);
}

std::optional<std::vector<int64_t>> ShardedSafetensors::ShapeOf(std::string_view name) const {
  auto it = shard_of_.find(name);
  return it == shard_of_.end() ? std::nullopt : it->second->ShapeOf(name);
}

std::vector<std::string> ShardedSafetensors::Names() const {
  std::vector<std::string> names;
  names.reserve(shard_of_.size());
  for (const auto& [name, file] : shard_of_) names.push_back(name);
  return names;
}

std::vector<const MappedFile*> ShardedSafetensors::Files() const {
  std::vector<const MappedFile*> files;
  for (const auto& [name, shard] : shards_) files.push_back(shard->Files().front());
  return files;
}

void ShardedSafetensors::DropPages() const {
  for (const auto& [name, file] : shards_) file->DropPages();
}

int64_t ShardedSafetensors::TotalBytes() const {
  int64_t total = 0;
  for (const auto& [name, file] : shards_) total += file->TotalBytes();
  return total;
}

}  // namespace vllm
