// AlignedBuffer: page-aligned memory for weights, the KV cache or a workspace. It is either zeroed memory from mmap or
// memory that something else keeps mapped: a part of a file, or a buffer that several owners share. A page uses
// physical memory only once it is touched. The first thread to write a zeroed page determines the page's NUMA node.
// Huge pages are advised for zeroed buffers of 2 MiB or more. Memory accounting counts whole buffers, so it does not
// depend on the system's setting for transparent huge pages. A buffer has one owner and does no locking.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace vllm::kernels {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Maps zeroed memory. Throws std::bad_alloc.
  explicit AlignedBuffer(size_t size_bytes);
  // Refers to existing bytes, which `owner` keeps mapped. They have their contents already and are read-only, unless
  // `is_filled` is false: then they are zeroed, and this buffer is the one through which they are written. REQUIRES:
  // `data` is page-aligned.
  AlignedBuffer(std::shared_ptr<const void> owner, const void* data, size_t size_bytes, bool is_filled = true);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;

  void* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  // Returns true if the buffer refers to existing contents, which must not be changed.
  bool is_filled() const { return is_filled_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
  bool is_filled_ = false;
  std::shared_ptr<const void> owner_;  // null: this object owns the memory
};

// A function that returns the buffers of one matrix, one for each size in bytes. Either all buffers are new and
// zeroed, or all of them already contain the matrix (is_filled()). Throws std::bad_alloc. NewBuffers always returns new
// buffers.
using BufferSource = std::function<std::vector<AlignedBuffer>(const std::vector<size_t>& sizes)>;
std::vector<AlignedBuffer> NewBuffers(const std::vector<size_t>& sizes);

}  // namespace vllm::kernels
