// BlobHash: the hash by which the hub names a file: the SHA-256 of a large file, or the SHA-1 of git for others. Owned
// by the download of the file; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace vllm::app {

class BlobHash {
 public:
  // `etag` is the expected hash; its length decides the algorithm. `size` is that of the file, because git hashes it
  // too. Throws ResourceError.
  BlobHash(const std::string& etag, int64_t size);

  // Adds the next bytes of the file. REQUIRES: Finish has not been called.
  void Add(std::string_view bytes);
  int64_t num_bytes() const { return num_bytes_; }
  // Ends the computation and returns the hash in hexadecimal digits. REQUIRES: not called before.
  std::string Finish();

 private:
  struct FreeContext {
    void operator()(void* context) const;
  };

  std::unique_ptr<void, FreeContext> context_;  // EVP_MD_CTX
  int64_t num_bytes_ = 0;
};

}  // namespace vllm::app
