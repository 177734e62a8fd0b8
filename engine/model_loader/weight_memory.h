// WeightMemory: where the matrices of a model get their memory while it is built. Used on the rank's thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

class WeightMemory {
 public:
  virtual ~WeightMemory() = default;
  // The memory of the matrix `name`. Two matrices may have one name; the order in which a model asks for them is fixed.
  // REQUIRES: the matrices live until the model is built.
  virtual kernels::BufferSource Buffers(const std::string& name) = 0;
  // Returns true if the next Buffers(name), asked for these sizes, returns filled buffers.
  virtual bool Contains(const std::string& name, const std::vector<size_t>& sizes) const = 0;
  // Memory of a matrix that is packed into another one at once and then freed.
  virtual kernels::BufferSource TemporaryBuffers() { return kernels::NewBuffers; }
};

// New memory for every matrix.
class NewWeightMemory final : public WeightMemory {
 public:
  kernels::BufferSource Buffers(const std::string& /*name*/) override { return kernels::NewBuffers; }
  bool Contains(const std::string& /*name*/, const std::vector<size_t>& /*sizes*/) const override { return false; }
};

}  // namespace vllm
