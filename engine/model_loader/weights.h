// WeightSource: the named tensors of a checkpoint, as views of its mapped files or of memory that the source owns. Used
// only while the model loads. Owned by the code that opened it. Immutable after opening; any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/mapped_file.h"
#include "kernels/matrix/weight_type.h"

namespace vllm {

// A row-major tensor. `data` is borrowed from the source and may be unaligned for its type.
struct TensorView {
  std::string name;  // for error messages
  kernels::WeightType type = kernels::WeightType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  // If above 0, the rows are those of a rotary query or key projection with this many rows per head. The two halves of
  // each head are interleaved (0, half, 1, half + 1, ...), as in GGUF files of Llama and some other architectures.
  // Row() undoes this.
  int64_t interleaved_head_dim = 0;
  // In NVFP4, a factor of all values. GGUF files store it in a tensor next to the matrix.
  float scale = 1.0f;

  int64_t num_elements() const;
  // Size of the last dimension in bytes.
  int64_t RowBytes() const { return BytesOf(type, shape.back()); }
  // Views the tensor as [num_elements / last dimension, last dimension] and returns row i in the model's order.
  const std::byte* Row(int64_t i) const;
  // Returns the type of the elements. Throws ModelError naming the tensor if it is not float32, float16 or bfloat16.
  kernels::DType dtype() const;
  // Throws like dtype(), for callers that need only the check.
  void CheckFloatingPoint() const { static_cast<void>(dtype()); }
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual bool Contains(std::string_view name) const = 0;
  // Throws ModelError naming the tensor if it is missing or its shape is not `shape`.
  virtual TensorView Get(std::string_view name, std::span<const int64_t> shape) const = 0;
  // Returns nullopt if the tensor is missing or the source does not report shapes (GGUF, dummy weights).
  virtual std::optional<std::vector<int64_t>> ShapeOf(std::string_view /*name*/) const { return std::nullopt; }
  // Drops the resident pages of mapped files. Otherwise the whole file and the packed weights would be in memory at the
  // same time. Views stay valid.
  virtual void DropPages() const {}
  // Returns true if linear layers have a bias exactly where the source contains one, regardless of the model's config.
  virtual bool DecidesBiases() const { return false; }
  virtual std::vector<std::string> Names() const = 0;
  // Returns the files that the tensors are read from; empty if there are none (dummy weights).
  virtual std::vector<const MappedFile*> Files() const { return {}; }
  // Returns the total size of the tensors in the files, in bytes; 0 for dummy weights.
  virtual int64_t TotalBytes() const = 0;
};

}  // namespace vllm
