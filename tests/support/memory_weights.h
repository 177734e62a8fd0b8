// MemoryWeights: a WeightSource of tensors that a test makes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/weights.h"

namespace vllm::testing_support {

class MemoryWeights : public WeightSource {
 public:
  template <typename T>
  void Add(const std::string& name, kernels::WeightType type, std::vector<int64_t> shape,
           const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    tensors_[name] = {type, std::move(shape), std::move(bytes)};
  }
  bool Contains(std::string_view name) const override { return tensors_.contains(std::string(name)); }
  std::optional<std::vector<int64_t>> ShapeOf(std::string_view name) const override {
    const auto it = tensors_.find(std::string(name));
    if (it == tensors_.end()) return std::nullopt;
    return it->second.shape;
  }
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override {
    const auto it = tensors_.find(std::string(name));
    if (it == tensors_.end()) throw ModelError("tensor " + std::string(name) + ": missing");
    if (!std::equal(shape.begin(), shape.end(), it->second.shape.begin(), it->second.shape.end())) {
      throw ModelError("tensor " + std::string(name) + ": shape");
    }
    return {.name = std::string(name), .type = it->second.type, .shape = it->second.shape, .data = it->second.bytes};
  }
  std::vector<std::string> Names() const override { return {}; }
  int64_t TotalBytes() const override { return 0; }

 private:
  struct Tensor {
    kernels::WeightType type;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::map<std::string, Tensor> tensors_;
};

}  // namespace vllm::testing_support
