// MappedFile: a regular file mapped read-only, with the size that fstat reported at open. Owned by its reader, such as
// a weight source or a packed file. Immutable; any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tokenizer/formats/regular_file.h"

namespace vllm {

class MappedFile {
 public:
  // Throws ModelError if the file cannot be opened or is not a regular file. Throws ResourceError if it cannot be
  // mapped or the system runs out of a resource, such as file descriptors.
  explicit MappedFile(const std::string& path);
  // Maps a file that is already open. `path` must be its path: CheckUnchanged and error messages use it.
  MappedFile(tokenizer::RegularFile file, const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  // Asks the system to read the file in huge pages, and to map it with them. It may do neither.
  void AdviseHugePages() const;
  // Drops the file's resident pages from this process. Later reads fault them in from the page cache or the disk.
  void DropPages() const;
  const std::string& path() const { return path_; }
  // Throws ModelError if the file was written to after it was opened, because the bytes read may mix old and new
  // contents. A file that was removed, or replaced by a rename, passes: the mapping still shows the old contents.
  void CheckUnchanged() const;
  // Modification time at open, in nanoseconds since the epoch.
  int64_t modified_ns() const { return modified_ns_; }
  uint64_t inode() const { return inode_; }

  // Returns the path, escaped for a terminal, of the file mapped at `address`, or null. Reading a mapped page raises
  // SIGBUS if the file was truncated; the signal handler calls this to name the file. Async-signal-safe.
  static const char* PathAt(const void* address);

 private:
  std::string path_;
  std::string shown_path_;
  std::span<const std::byte> bytes_;
  int64_t modified_ns_ = 0;
  uint64_t inode_ = 0;
};

}  // namespace vllm
