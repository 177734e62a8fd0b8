// GgufFile: a GGUF model on disk, in one file or split into several that lie in one directory, mapped. The metadata are
// the first file's, the tensors those of all. Owned by whoever opened it; immutable, any thread may read.
//
// The parts of a split file are named NAME-00001-of-00003.gguf and so on; each says which it is: split.no (from 0),
// split.count, and split.tensors.count, the tensors of all parts together.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/gguf/header.h"
#include "engine/model_loader/mapped_file.h"

namespace vllm {

class GgufFile {
 public:
  // `path` may be any part of a split file. Throws ModelError.
  explicit GgufFile(const std::string& path);
  // A file in memory, in one part; `bytes` is borrowed. `path` is for messages.
  GgufFile(std::span<const std::byte> bytes, const std::string& path);

  const GgufMetadata& metadata() const { return parts_.front().header.metadata; }
  uint32_t version() const { return parts_.front().header.version; }
  const std::vector<const GgufTensor*>& tensors() const { return tensors_; }  // by name
  const GgufTensor* Find(std::string_view name) const;                        // null when there is none
  // The file, or the first part of a split one.
  const std::string& path() const { return parts_.front().path; }
  std::vector<std::string> paths() const;
  // Its parts; empty when it is in memory.
  std::vector<const MappedFile*> files() const;
  // As MappedFile's, of all parts.
  void DropPages() const;

  // The parts' paths by the name of any of them, or just `path` when it is not named like a part.
  static std::vector<std::string> PartsOf(const std::string& path);

 private:
  struct Part {
    std::unique_ptr<MappedFile> file;  // null: in memory
    std::string path;
    GgufHeader header;
  };
  static Part Open(const std::string& path);
  void OpenParts(const std::string& path, Part named, int64_t count);
  void CollectTensors();

  std::vector<Part> parts_;
  std::vector<const GgufTensor*> tensors_;
};

}  // namespace vllm
