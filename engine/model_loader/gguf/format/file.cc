#include "engine/model_loader/gguf/format/file.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr size_t kDigits = 5;
// All parts are mapped at once. The largest published models have about a hundred parts.
constexpr int64_t kMaxParts = 4096;

std::string FiveDigits(int64_t number) {
  std::string text = std::to_string(number);
  return std::string(text.size() < kDigits ? kDigits - text.size() : 0, '0') + text;
}

// Returns the five-digit number at `offset`, or -1 if there is none.
int64_t NumberAt(std::string_view text, size_t offset) {
  int64_t number = 0;
  for (size_t i = offset; i < offset + kDigits; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    number = 10 * number + (text[i] - '0');
  }
  return number;
}

struct PartName {
  std::string prefix;  // "/models/x-"
  int64_t number = 0;  // from 1
  int64_t count = 0;   // 0: not the name of a part
};

// Parses PREFIX-00001-of-00003.gguf.
PartName ParsePartName(const std::string& path) {
  const size_t tail = 1 + kDigits + 4 + kDigits + kExtension.size();
  if (path.size() <= tail || !path.ends_with(kExtension)) return {};
  const size_t dash = path.size() - tail;
  if (path[dash] != '-' || path.compare(dash + 1 + kDigits, 4, "-of-") != 0) return {};
  PartName name{path.substr(0, dash + 1), NumberAt(path, dash + 1), NumberAt(path, dash + 1 + kDigits + 4)};
  const bool valid = name.number >= 1 && name.count >= 1 && name.number <= name.count && name.count <= kMaxParts;
  return valid ? name : PartName{};
}

std::string PartPath(const PartName& name, int64_t number) {
  return name.prefix + FiveDigits(number) + "-of-" + FiveDigits(name.count) + std::string(kExtension);
}

}  // namespace

std::vector<std::string> GgufFile::PartsOf(const std::string& path) {
  const PartName name = ParsePartName(path);
  if (name.count == 0) return {path};
  std::vector<std::string> paths;
  for (int64_t number = 1; number <= name.count; ++number) paths.push_back(PartPath(name, number));
  return paths;
}

GgufFile::Part GgufFile::Open(const std::string& path) {
  auto file = std::make_unique<MappedFile>(path);
  GgufHeader header = ParseGguf(file->bytes(), path);
  return {std::move(file), path, std::move(header)};
}

GgufFile::GgufFile(const std::string& path) {
  Part named = Open(path);
  const int64_t count = named.header.metadata.Int("split.count", 0, kMaxParts).value_or(0);
  if (count > 1) {
    OpenParts(path, std::move(named), count);
  } else {
    parts_.push_back(std::move(named));
  }
  CollectTensors();
  constexpr std::string_view kTotal = "split.tensors.count";
  const std::optional<int64_t> total = metadata().Int(kTotal, 0, std::numeric_limits<int32_t>::max());
  if (count > 1 && total && static_cast<uint64_t>(*total) != tensors_.size()) {
    metadata().Fail(kTotal, "does not match the " + std::to_string(tensors_.size()) + " tensors of the parts (" +
                                std::to_string(*total) + ")");
  }
}

GgufFile::GgufFile(std::span<const std::byte> bytes, const std::string& path) {
  parts_.push_back({nullptr, path, ParseGguf(bytes, path)});
  CollectTensors();
}

void GgufFile::CollectTensors() {
  for (const Part& part : parts_) {
    for (const GgufTensor& tensor : part.header.tensors) tensors_.push_back(&tensor);
  }
  std::sort(tensors_.begin(), tensors_.end(),
            [](const GgufTensor* a, const GgufTensor* b) { return a->name < b->name; });
  const auto duplicate = std::adjacent_find(
      tensors_.begin(), tensors_.end(), [](const GgufTensor* a, const GgufTensor* b) { return a->name == b->name; });
  if (duplicate != tensors_.end()) {
    throw ModelError("gguf file " + Escape(path()) + ": tensor " + Escape((*duplicate)->name) +
                     ": occurs in two parts");
  }
}

void GgufFile::OpenParts(const std::string& path, Part named, int64_t count) {
  const PartName name = ParsePartName(path);
  const int64_t number = named.header.metadata.RequiredInt("split.no", 0, count - 1) + 1;
  if (name.number != number || name.count != count) {
    named.header.metadata.Fail("split.no", "this part must be named NAME-" + FiveDigits(number) + "-of-" +
                                               FiveDigits(count) +
                                               ".gguf because of its split.no and split.count (split.no is " +
                                               std::to_string(number - 1) + "; file names count from 1)");
  }
  for (int64_t i = 1; i <= count; ++i) {
    // NOLINTNEXTLINE(bugprone-use-after-move): only one i is the number of the named part
    Part part = i == number ? std::move(named) : Open(PartPath(name, i));
    const GgufMetadata& metadata = part.header.metadata;
    if (metadata.RequiredInt("split.no", 0, kMaxParts) != i - 1)
      metadata.Fail("split.no", "does not match the file name");
    if (metadata.RequiredInt("split.count", 0, kMaxParts) != count) {
      metadata.Fail("split.count", "does not match the file name");
    }
    parts_.push_back(std::move(part));
  }
}

const GgufTensor* GgufFile::Find(std::string_view name) const {
  const auto it = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const GgufTensor* tensor, std::string_view key) { return tensor->name < key; });
  return it != tensors_.end() && (*it)->name == name ? *it : nullptr;
}

std::vector<std::string> GgufFile::paths() const {
  std::vector<std::string> paths;
  for (const Part& part : parts_) paths.push_back(part.path);
  return paths;
}

std::vector<const MappedFile*> GgufFile::files() const {
  std::vector<const MappedFile*> files;
  for (const Part& part : parts_) {
    if (part.file) files.push_back(part.file.get());
  }
  return files;
}

void GgufFile::DropPages() const {
  for (const Part& part : parts_) {
    if (part.file) part.file->DropPages();
  }
}

}  // namespace vllm
