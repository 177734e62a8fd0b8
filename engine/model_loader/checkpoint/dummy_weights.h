// DummyWeights: a weight source for benchmarks that provides any tensor in any shape. Values depend only on the
// tensor's name and type: small and random, or 1 if the name contains "norm". All tensors are windows into two buffers
// that are mapped repeatedly, so memory does not grow with the model. Owned by the code that opened it. Any thread may
// read.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/weights.h"

namespace vllm {

class DummyWeights : public WeightSource {
 public:
  DummyWeights(kernels::DType dtype, bool tie_word_embeddings);
  ~DummyWeights() override;
  DummyWeights(const DummyWeights&) = delete;
  DummyWeights& operator=(const DummyWeights&) = delete;

  // Returns true, except for the output head if the model ties it to the embedding.
  bool Contains(std::string_view name) const override;
  // Throws ModelError if a dimension is negative or the shape is too large, ResourceError if the process runs out of
  // memory, address space or file descriptors.
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override;
  std::vector<std::string> Names() const override { return {}; }
  int64_t TotalBytes() const override { return 0; }

 private:
  // A memory file of kPatternBytes and the mappings that repeat it.
  struct Pattern {
    int fd = -1;
    std::vector<std::span<const std::byte>> mappings;  // of growing size; views keep using the earlier ones
  };
  // Returns a mapping of at least `bytes` bytes that repeats the pattern. REQUIRES: mutex_ is held.
  std::span<const std::byte> Window(Pattern& pattern, size_t bytes) const;

  kernels::DType dtype_;
  bool tie_word_embeddings_;
  mutable std::mutex mutex_;
  mutable Pattern random_;
  mutable Pattern ones_;
};

}  // namespace vllm
