// DummyWeights: every tensor of any shape, for benches. Values depend on the tensor's name and type only: small and
// random, or 1 where the name says "norm". All tensors are windows on two buffers that are mapped again and again, so
// memory does not grow with the model. Any thread may read.
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
  DummyWeights(DType dtype, bool tie_word_embeddings);
  ~DummyWeights() override;
  DummyWeights(const DummyWeights&) = delete;
  DummyWeights& operator=(const DummyWeights&) = delete;

  // True for all but the output head of a model that shares it with the embedding.
  bool Contains(std::string_view name) const override;
  // Throws ResourceError when the machine has no address space for the shape.
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override;
  std::vector<std::string> Names() const override { return {}; }
  int64_t TotalBytes() const override { return 0; }

 private:
  // One memory file of kPatternBytes and the largest mapping that repeats it.
  struct Pattern {
    int fd = -1;
    std::vector<std::span<const std::byte>> mappings;  // growing; earlier ones stay for the views on them
  };
  std::span<const std::byte> Window(Pattern& pattern, size_t bytes) const;

  DType dtype_;
  bool tie_word_embeddings_;
  mutable std::mutex mutex_;
  mutable Pattern random_;
  mutable Pattern ones_;
};

}  // namespace vllm
