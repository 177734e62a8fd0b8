// PackedCache: a directory of packed-weight files, one or two for each combination of checkpoint and settings. It uses
// only a directory and files that the effective user owns and nobody else can write to. Several processes may use it at
// once: a file appears complete or not at all, and a deleted file stays readable while it is mapped. A value type; any
// thread. The files are named KEY.packed. The program's directory is $XDG_CACHE_HOME/vllmcli/packed, by default
// ~/.cache/vllmcli/packed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/files/private_directory.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm {

class PackedCache {
 public:
  // `max_bytes` limits the total size of the cache files.
  PackedCache(std::string directory, int64_t max_bytes) : directory_(std::move(directory)), max_bytes_(max_bytes) {}

  int64_t max_bytes() const { return max_bytes_; }
  std::string PathOf(const std::string& key) const;
  // Opens the key's file and marks it as the most recently used; eviction starts with the least recently used. Returns
  // nullopt if the file does not exist. Throws ModelError if the directory or the file must not be trusted or cannot be
  // opened.
  std::optional<tokenizer::RegularFile> OpenFile(const std::string& key) const;
  // Evicts files until `bytes` fit, calls `write` to fill an empty temporary file, and renames it to the key's file.
  // Throws ResourceError if the directory or the file cannot be created or the file cannot be renamed, ModelError if
  // the directory must not be trusted or cannot be opened, and any exception of `write`. On an error, the key's old
  // file stays, but other files may have been evicted. REQUIRES: bytes <= max_bytes().
  void Put(const std::string& key, int64_t bytes,
           const std::function<void(int fd, const std::string& path)>& write) const;

 private:
  void EvictFor(const PrivateDirectory& directory, int64_t bytes, const std::string& replaced) const;

  std::string directory_;
  int64_t max_bytes_;
};

}  // namespace vllm
