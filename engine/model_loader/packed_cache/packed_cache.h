// PackedCache: the directory that holds files of packed weights, one per rank. Only a directory and files that belong
// to the effective user and that nobody else can write are used. Several processes may use it at once: a file appears
// complete or not at all, and a deleted file stays readable for those who have it mapped. A value; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/model_loader/packed_cache/private_directory.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm {

class PackedCache {
 public:
  // `max_bytes` is the limit for all files together.
  PackedCache(std::string directory, int64_t max_bytes) : directory_(std::move(directory)), max_bytes_(max_bytes) {}

  int64_t max_bytes() const { return max_bytes_; }
  std::string PathOf(const std::string& key) const;
  // Opens the key's file and marks it as used now: the least recently used file is the first to go. Returns nullopt
  // when there is none. Throws ModelError, which says why, when the directory or the file must not be trusted.
  std::optional<RegularFile> OpenFile(const std::string& key) const;
  // Makes room for `bytes`, then has `write` fill an empty file of another name, which takes the place of the key's.
  // Throws ResourceError, as `write` may, and ModelError when the directory must not be trusted; then nothing has
  // changed except that old files may be gone. REQUIRES: `bytes` is at most max_bytes().
  void Put(const std::string& key, int64_t bytes,
           const std::function<void(int fd, const std::string& path)>& write) const;

 private:
  void MakeRoom(const PrivateDirectory& directory, int64_t bytes, const std::string& replaced) const;

  std::string directory_;
  int64_t max_bytes_;
};

}  // namespace vllm
