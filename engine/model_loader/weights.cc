#include "engine/model_loader/weights.h"

#include <optional>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {

int64_t TensorView::num_elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

const std::byte* TensorView::Row(int64_t i) const {
  if (interleaved_head_dim > 0) {
    const int64_t half = interleaved_head_dim / 2;
    const int64_t row_in_head = i % interleaved_head_dim;
    i += (row_in_head < half ? 2 * row_in_head : 2 * (row_in_head - half) + 1) - row_in_head;
  }
  return data.data() + i * RowBytes();
}

kernels::DType TensorView::dtype() const {
  if (const std::optional<kernels::DType> plain = kernels::ToDType(type)) return *plain;
  throw ModelError("tensor " + Escape(name) + ": must be F32, F16 or BF16 (" + std::string(InfoOf(type).name) + ")");
}

}  // namespace vllm
