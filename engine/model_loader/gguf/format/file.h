// GgufFile: a mapped GGUF model, in one file or split into several files of one directory. The metadata comes from the
// first file, the tensors from all files. Owned by the code that opened it. Immutable; any thread may read.
//
// The parts of a split model are named NAME-00001-of-00003.gguf and so on. Each part contains split.no (from 0),
// split.count, and split.tensors.count, the number of tensors in all parts.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/gguf/format/header.h"
#include "engine/model_loader/mapped_file.h"

namespace vllm {

class GgufFile {
 public:
  // `path` may be any part of a split model. Throws ModelError, and ResourceError if a file cannot be mapped.
  explicit GgufFile(const std::string& path);
  // Parses a one-part model that is in memory. Borrows `bytes`; `path` is for messages. Throws ModelError.
  GgufFile(std::span<const std::byte> bytes, const std::string& path);

  const GgufMetadata& metadata() const { return parts_.front().header.metadata; }
  uint32_t version() const { return parts_.front().header.version; }
  const std::vector<const GgufTensor*>& tensors() const { return tensors_; }  // sorted by name
  const GgufTensor* Find(std::string_view name) const;                        // null if missing
  // Path of the file, or of the first part of a split model.
  const std::string& path() const { return parts_.front().path; }
  std::vector<std::string> paths() const;
  // The mapped parts; empty if the model is in memory.
  std::vector<const MappedFile*> files() const;
  // Calls MappedFile::DropPages on all parts.
  void DropPages() const;

  // Returns the paths of all parts, given the path of any part. Returns only `path` if its name is not that of a part.
  static std::vector<std::string> PartsOf(const std::string& path);

 private:
  struct Part {
    std::unique_ptr<MappedFile> file;  // null: the part is in memory
    std::string path;
    GgufHeader header;
  };
  static Part Open(const std::string& path);
  // Opens the other parts of a split model. `named` is the part at `path`.
  void OpenParts(const std::string& path, Part named, int64_t count);
  void CollectTensors();

  std::vector<Part> parts_;
  std::vector<const GgufTensor*> tensors_;
};

}  // namespace vllm
