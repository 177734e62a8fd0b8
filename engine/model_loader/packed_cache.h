// PackedCache: the folder that files of packed weights are kept in, one a rank. Several processes may use it at once:
// a file appears whole or not at all, and one that is deleted stays readable for those that have it mapped. Values;
// any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace vllm {

class PackedCache {
 public:
  // `max_bytes`: of all files together.
  PackedCache(std::string folder, int64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  int64_t max_bytes() const { return max_bytes_; }
  std::string PathOf(const std::string& key) const;
  // Marks a file as used now: the least recently used is the first to go.
  void Touch(const std::string& path) const;
  // Makes room for `bytes`, then has `write` fill an empty file of another name, which takes the place of the key's.
  // Throws ResourceError, as `write` may: then nothing has changed but that old files may be gone. REQUIRES: `bytes` is
  // not above max_bytes().
  void Put(const std::string& key, int64_t bytes,
           const std::function<void(int fd, const std::string& path)>& write) const;

 private:
  void MakeRoom(int64_t bytes, const std::string& replaced) const;

  std::string folder_;
  int64_t max_bytes_;
};

}  // namespace vllm
