#include "engine/model_loader/quantization/tensor.h"

#include <array>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {

void RejectTensor(const std::string& name, const std::string& why) {
  throw ModelError("tensor " + Escape(name) + ": " + why);
}

TensorView GetTyped(const WeightSource& weights, const std::string& name, std::initializer_list<int64_t> shape,
                    kernels::WeightType type) {
  TensorView view = weights.Get(name, std::vector<int64_t>(shape));
  if (view.type != type) {
    RejectTensor(name, "must be " + std::string(InfoOf(type).name) + " (" + std::string(InfoOf(view.type).name) + ")");
  }
  return view;
}

TensorView GetScales(const WeightSource& weights, const std::string& name, std::initializer_list<int64_t> shape) {
  TensorView view = weights.Get(name, std::vector<int64_t>(shape));
  view.CheckFloatingPoint();
  return view;
}

int64_t NumGroups(int64_t in_features, int64_t group_size) {
  return group_size <= 0 ? 1 : (in_features + group_size - 1) / group_size;
}

std::vector<int32_t> RunsOfGroups(int64_t in_features, int64_t group_size) {
  std::vector<int32_t> groups(static_cast<size_t>(in_features), 0);
  if (group_size <= 0) return groups;
  for (int64_t k = 0; k < in_features; ++k) groups[static_cast<size_t>(k)] = static_cast<int32_t>(k / group_size);
  return groups;
}

std::vector<int32_t> ReadGroupIndex(const WeightSource& weights, const std::string& name, int64_t in_features,
                                    int64_t num_groups) {
  const TensorView view = GetTyped(weights, name, {in_features}, kernels::WeightType::kInt32);
  std::vector<int32_t> groups(static_cast<size_t>(in_features));
  std::memcpy(groups.data(), view.data.data(), view.data.size());
  for (const int32_t group : groups) {
    if (group < 0 || group >= num_groups) {
      RejectTensor(
          name, "group index is outside 0 to " + std::to_string(num_groups - 1) + " (" + std::to_string(group) + ")");
    }
  }
  return groups;
}

}  // namespace vllm
