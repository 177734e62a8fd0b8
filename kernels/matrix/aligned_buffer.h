// AlignedBuffer: page-aligned memory of a matrix or of a step. It is either zeroed memory from mmap, with huge pages
// advised when it is large, or part of a file that is mapped read-only. A page takes memory only once it is touched,
// so the thread that writes it first determines its NUMA node. A buffer has one owner and does no locking.
// Huge pages are advised from 2 MiB on. Memory accounting counts whole buffers, so the system's transparent-huge-page
// setting does not change it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace vllm::kernels {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws std::bad_alloc.
  explicit AlignedBuffer(size_t size_bytes);
  // A view of existing, read-only bytes; `owner` keeps them mapped. REQUIRES: `data` is page-aligned.
  AlignedBuffer(std::shared_ptr<const void> owner, const void* data, size_t size_bytes);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;

  void* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  // Returns true if the buffer already has its contents and is read-only.
  bool is_filled() const { return owner_ != nullptr; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
  std::shared_ptr<const void> owner_;  // null: this object owns the memory
};

// Returns the buffers of one matrix, one for each size in bytes: either all are new and zeroed, for the matrix to fill,
// or all are filled. Throws std::bad_alloc.
using BufferSource = std::function<std::vector<AlignedBuffer>(const std::vector<size_t>& sizes)>;
std::vector<AlignedBuffer> NewBuffers(const std::vector<size_t>& sizes);

}  // namespace vllm::kernels
