// AlignedBuffer: page-aligned memory of a matrix or of a step: zeroed memory straight from the kernel, huge pages
// advised when large, or a part of a file that is mapped read-only. Pages cost memory only once touched, so the thread
// that first writes decides where they live.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

namespace vllm {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws std::bad_alloc.
  explicit AlignedBuffer(size_t size_bytes);
  // Bytes that are there already and may only be read; `owner` keeps them so. REQUIRES: page-aligned.
  AlignedBuffer(std::shared_ptr<const void> owner, const void* data, size_t size_bytes);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;

  void* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  // True: what belongs in it is in it, and nobody may write.
  bool is_filled() const { return owner_ != nullptr; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
  std::shared_ptr<const void> owner_;  // null: the memory is this object's own
};

// Returns the buffers of one matrix, one for each size in bytes: either all are new and zeroed, for the matrix to fill,
// or all are filled. Throws std::bad_alloc.
using BufferSource = std::function<std::vector<AlignedBuffer>(std::initializer_list<size_t> sizes)>;
std::vector<AlignedBuffer> NewBuffers(std::initializer_list<size_t> sizes);

}  // namespace vllm
