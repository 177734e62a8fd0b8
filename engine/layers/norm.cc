#include "engine/layers/norm.h"

#include <array>

#include "engine/layers/for_each_row.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

std::vector<float> LoadFloats(const WeightSource& weights, const std::string& name, int64_t total, Shard shard) {
  const TensorView view = weights.Get(name, std::array{total});
  const kernels::DType dtype = view.dtype();
  std::vector<float> values(static_cast<size_t>(shard.count));
  kernels::ConvertToFloat(view.data.data() + static_cast<size_t>(shard.begin) * SizeOf(dtype), dtype, shard.count,
                          values.data());
  return values;
}

Norm::Norm(const LoadContext& load, const std::string& name, int64_t size, const NormSpec& spec)
    : step_(load.step), kind_(spec.kind), size_(size), eps_(static_cast<float>(spec.eps)) {
  const bool is_rms = kind_ == NormSpec::Kind::kRms;
  if (is_rms && !spec.has_weight) {
    weight_.assign(static_cast<size_t>(size), 1.0f);
  } else if (spec.has_weight) {
    weight_ = LoadFloats(load.weights, name + ".weight", size, {0, size});
    for (float& weight : weight_) weight += static_cast<float>(spec.offset);
  }
  if (!is_rms && spec.has_weight && spec.has_bias) bias_ = LoadFloats(load.weights, name + ".bias", size, {0, size});
}

void Norm::Forward(const float* x, int64_t num_rows, float* out) const {
  ForEachRow(step_, num_rows, size_, [&](int64_t row) { Row(x + row * size_, out + row * size_); });
}

void Norm::Row(const float* x, float* out) const {
  if (kind_ == NormSpec::Kind::kRms) {
    step_.kernels->rms_norm(x, weight_.data(), eps_, size_, out);
  } else {
    step_.kernels->layer_norm(x, weight_.empty() ? nullptr : weight_.data(), bias_.empty() ? nullptr : bias_.data(),
                              eps_, size_, out);
  }
}

}  // namespace vllm
