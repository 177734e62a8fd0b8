#include "kernels/matrix/aligned_buffer.h"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace vllm::kernels {

namespace {
constexpr size_t kHugePage = size_t{2} << 20;
}

AlignedBuffer::AlignedBuffer(size_t size_bytes) : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  void* p = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  if (size_bytes >= kHugePage) madvise(p, size_bytes, MADV_HUGEPAGE);
  data_ = p;
}

AlignedBuffer::AlignedBuffer(std::shared_ptr<const void> owner, const void* data, size_t size_bytes, bool is_filled)
    : data_(const_cast<void*>(data)), size_bytes_(size_bytes), is_filled_(is_filled), owner_(std::move(owner)) {}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr && owner_ == nullptr) munmap(data_, size_bytes_);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      is_filled_(std::exchange(other.is_filled_, false)),
      owner_(std::move(other.owner_)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(is_filled_, other.is_filled_);
  std::swap(owner_, other.owner_);
  return *this;
}

std::vector<AlignedBuffer> NewBuffers(const std::vector<size_t>& sizes) {
  std::vector<AlignedBuffer> buffers;
  buffers.reserve(sizes.size());
  for (const size_t size : sizes) buffers.emplace_back(size);
  return buffers;
}

}  // namespace vllm::kernels
