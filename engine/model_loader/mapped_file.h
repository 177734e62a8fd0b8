// MappedFile: a regular file mapped read-only, of the size that fstat gave when it was opened. Owned by the weight
// source that reads it; immutable, any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tokenizer/formats/regular_file.h"

namespace vllm {

class MappedFile {
 public:
  // Throws ModelError when the file cannot be opened or is not a regular file, ResourceError when it cannot be mapped.
  explicit MappedFile(const std::string& path);
  // Maps a file that is already open; `path` is its name for messages.
  MappedFile(RegularFile file, const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  // Takes the pages that were read out of this process's memory; read again, they come from the page cache or the disk.
  void DropPages() const;
  const std::string& path() const { return path_; }
  // Throws ModelError when the file was written to since it was opened: what was read may be half old and half new. A
  // file that was removed, or replaced by renaming another, is still mapped as it was.
  void CheckUnchanged() const;
  // When it was opened.
  int64_t modified_ns() const { return modified_ns_; }
  uint64_t inode() const { return inode_; }

  // The path, fit for a terminal, of the file that is mapped at this address, or null. A page of a file that was cut
  // short while it is mapped cannot be read: the fault's handler asks here whose it was. Async-signal-safe.
  static const char* PathAt(const void* address);

 private:
  std::string path_;
  std::string shown_path_;
  std::span<const std::byte> bytes_;
  int64_t modified_ns_ = 0;
  uint64_t inode_ = 0;
};

}  // namespace vllm
