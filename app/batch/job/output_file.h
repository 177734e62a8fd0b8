// OutputFile: a regular file that one batch job appends to. It is locked, so that a second job cannot write to it, and
// a write that fails leaves no partial record. Owned by BatchJob and BatchOutput; main thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

class OutputFile {
 public:
  // Opens or creates the file and locks it. Prints a warning if the file system has no locks. Throws ConfigError if
  // another process has locked it or if it is not a regular file, and ResourceError if it cannot be opened.
  explicit OutputFile(std::string path);

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }

  // Appends `bytes` with one write() where possible. If it fails, removes what was written and throws ResourceError.
  void Append(std::string_view bytes);
  // Shortens the file. Throws ResourceError.
  void Cut(int64_t size);
  // Flushes the data to the storage device, unless nothing has changed since the last call. Throws ResourceError.
  void Sync();
  // Throws ResourceError if the path no longer names this file, because somebody has removed or replaced it.
  void CheckExists() const;
  // Renames the file to `path`, replacing a file of that name. Throws ResourceError.
  void RenameTo(const std::string& path);
  int fd() const { return fd_.get(); }

 private:
  [[noreturn]] void Fail(const std::string& action, int error) const;

  std::string path_;
  tokenizer::UniqueFd fd_;
  int64_t size_ = 0;
  bool is_dirty_ = false;
};

// Returns true if another process has locked the file. Returns false if it does not exist.
bool IsLocked(const std::string& path);

// Flushes the directory that contains `path`, so that a file created or renamed in it survives a power failure. Ignores
// file systems that cannot do this.
void SyncDirectoryOf(const std::string& path);

}  // namespace vllm::app
