// BlobLock: the lock that huggingface_hub holds while it downloads a blob: flock on
// .locks/models--OWNER--NAME/ETAG.lock. Owned by the download of the blob; one thread.
#pragma once

#include <filesystem>
#include <string>

#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

class BlobLock {
 public:
  // Does not open the file yet.
  explicit BlobLock(std::filesystem::path path) : path_(std::move(path)) {}

  // Tries to take the lock. Returns false if another process holds it. If the file system has no locks, returns true
  // and is_real() is false. Throws ResourceError.
  bool TryLock();
  // Returns true if the lock is held, and excludes other processes.
  bool is_real() const { return is_real_; }
  // Returns who holds the lock: "process 4711 on build1", or "another program" if it has not written its name.
  std::string HolderText() const;
  // Releases the lock. The file stays, as huggingface_hub leaves it: removing it would let two processes lock files of
  // the same name.
  void Unlock();

 private:
  std::filesystem::path path_;
  tokenizer::UniqueFd fd_;
  bool is_real_ = false;
};

// Returns the name of this machine.
std::string HostName();

}  // namespace vllm::app
