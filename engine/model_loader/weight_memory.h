// WeightMemory: allocates the memory of a model's matrices while the model is built. Owned by the code that builds the
// model. Used on the rank's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

// Decides which rank fills which part of a matrix that several ranks share. Thread-safe.
class Claims {
 public:
  // Returns true to the first caller with this index only.
  bool Claim(int64_t index) {
    const std::lock_guard lock(mutex_);
    if (std::ssize(is_claimed_) <= index) is_claimed_.resize(static_cast<size_t>(index) + 1);
    return !std::exchange(is_claimed_[static_cast<size_t>(index)], 1);
  }

 private:
  std::mutex mutex_;
  std::vector<char> is_claimed_;
};

// The memory of a matrix that the ranks share.
struct SharedMatrixMemory {
  kernels::BufferSource buffers;
  // Before a rank fills a part of new buffers, it claims the part, and leaves it to another rank if it cannot. All
  // parts are filled once all ranks have built the model. Null: the rank fills what it uses.
  Claims* claims = nullptr;
};

class WeightMemory {
 public:
  virtual ~WeightMemory() = default;
  // Returns the source of memory for matrix `name` of this rank. Several matrices may have the same name, because each
  // load requests them in the same order. REQUIRES: the matrices live until the model is built.
  virtual kernels::BufferSource Buffers(const std::string& name) = 0;
  // Returns true if the source from Buffers(name), called next with these sizes in bytes, would return filled buffers.
  virtual bool Contains(const std::string& name, const std::vector<size_t>& sizes) const = 0;
  // The same for a matrix that has the same name and sizes on all ranks that request it.
  virtual SharedMatrixMemory SharedBuffers(const std::string& name) { return {Buffers(name)}; }
  virtual bool ContainsShared(const std::string& name, const std::vector<size_t>& sizes) const {
    return Contains(name, sizes);
  }
  // Returns the source of memory for a matrix that is immediately packed into another one and then freed.
  virtual kernels::BufferSource TemporaryBuffers() { return kernels::NewBuffers; }
};

// Allocates new memory for every matrix.
class NewWeightMemory final : public WeightMemory {
 public:
  kernels::BufferSource Buffers(const std::string& /*name*/) override { return kernels::NewBuffers; }
  bool Contains(const std::string& /*name*/, const std::vector<size_t>& /*sizes*/) const override { return false; }
};

}  // namespace vllm
