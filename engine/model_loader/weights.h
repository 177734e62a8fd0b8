// WeightSource: named tensors of a checkpoint, mapped and not copied. Immutable after opening; any thread may read.
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

// Row-major. `data` is borrowed from the source and may be unaligned for its type.
struct TensorView {
  std::string name;  // as the source has it, for messages
  WeightType type = WeightType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  // Above 0: the rows are the heads of a rotary query or key projection, of this many rows each, stored with the two
  // halves of a head interleaved (0, half, 1, half + 1, ...), as GGUF files of the llama architecture have them. Row()
  // undoes it.
  int64_t interleaved_head_dim = 0;

  int64_t num_elements() const;
  // The last dimension in bytes.
  int64_t RowBytes() const { return BytesOf(type, shape.back()); }
  // Row i of the tensor seen as [num_elements / last dimension, last dimension], in the model's order.
  const std::byte* Row(int64_t i) const;
  // Throws ModelError naming the tensor when its elements are no plain float32, float16 or bfloat16.
  DType dtype() const;
  // Throws as dtype() does, for callers that need no more than the check.
  void CheckFloatingPoint() const { static_cast<void>(dtype()); }
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual bool Contains(std::string_view name) const = 0;
  // Throws ModelError naming the tensor when it is missing or its shape is not `shape`.
  virtual TensorView Get(std::string_view name, std::span<const int64_t> shape) const = 0;
  // None when the tensor is missing or the source makes tensors of any shape.
  virtual std::optional<std::vector<int64_t>> ShapeOf(std::string_view /*name*/) const { return std::nullopt; }
  // Takes what was read of a mapped file out of the process's memory, which else grows to the file's size beside the
  // packed weights. Views stay valid.
  virtual void DropPages() const {}
  // True where linear layers have the biases that the source has, whatever their family says.
  virtual bool DecidesBiases() const { return false; }
  virtual std::vector<std::string> Names() const = 0;
  // What all of it was read from; empty where it was not read from files.
  virtual std::vector<const MappedFile*> Files() const { return {}; }
  virtual int64_t TotalBytes() const = 0;
};

}  // namespace vllm
