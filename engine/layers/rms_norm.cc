#include "engine/layers/rms_norm.h"

#include <array>

#include "engine/layers/for_each_row.h"
#include "kernels/packed_matrix.h"

namespace vllm {

RmsNorm::RmsNorm(const RankContext& context, const WeightSource& weights, const std::string& name, int64_t size,
                 double eps)
    : context_(context), weight_(static_cast<size_t>(size)), eps_(static_cast<float>(eps)) {
  const TensorView view = weights.Get(name + ".weight", std::array{size});
  ConvertToFloat(view.data.data(), view.dtype(), size, weight_.data());
}

void RmsNorm::Forward(const float* x, int64_t num_rows, float* out) const {
  const auto size = static_cast<int64_t>(weight_.size());
  ForEachRow(context_, num_rows, size, [&](int64_t row) {
    context_.kernels->rms_norm(x + row * size, weight_.data(), eps_, size, out + row * size);
  });
}

}  // namespace vllm
