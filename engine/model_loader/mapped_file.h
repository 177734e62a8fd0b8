// MappedFile: a regular file mapped read-only, of the size that fstat gave when it was opened. Owned by the weight
// source that reads it; immutable, any thread may read.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace vllm {

class MappedFile {
 public:
  // Throws ModelError when the file cannot be opened, is not a regular file, or cannot be mapped.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace vllm
