// WeightSource: named tensors of a checkpoint, mapped and not copied. Immutable after opening; any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/vllm_config.h"
#include "kernels/dtype.h"

namespace vllm {

// Row-major. `data` is borrowed from the source and may be unaligned for its type.
struct TensorView {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;

  int64_t num_elements() const;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual bool Contains(std::string_view name) const = 0;
  // Throws ModelError naming the tensor when it is missing or its shape is not `shape`.
  virtual TensorView Get(std::string_view name, std::span<const int64_t> shape) const = 0;
  virtual std::vector<std::string> Names() const = 0;
  virtual int64_t TotalBytes() const = 0;
};

// Opens the weights of config.model.folder: model.safetensors, or the shards of model.safetensors.index.json, or with
// LoadFormat::kDummy values that depend on the tensor's name only. Throws ModelError.
std::unique_ptr<WeightSource> OpenWeights(const VllmConfig& config);

}  // namespace vllm
