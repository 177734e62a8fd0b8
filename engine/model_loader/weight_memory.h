// WeightMemory: allocates the memory of a model's matrices while the model is built. Owned by the code that builds the
// model. Used on the rank's thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

class WeightMemory {
 public:
  virtual ~WeightMemory() = default;
  // Returns the source of memory for matrix `name`. Several matrices may have the same name, because each load requests
  // them in the same order. REQUIRES: the matrices live until the model is built.
  virtual kernels::BufferSource Buffers(const std::string& name) = 0;
  // Returns true if the source from Buffers(name), called next with these sizes in bytes, would return filled buffers.
  virtual bool Contains(const std::string& name, const std::vector<size_t>& sizes) const = 0;
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
