// Tensors of a quantized layer, checked for type and shape, and words of packed codes. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/model_loader/weights.h"

namespace vllm {

[[noreturn]] void RefuseTensor(const std::string& name, const std::string& why);

// Throws ModelError when the tensor is missing or its type or shape differs.
TensorView GetTyped(const WeightSource& weights, const std::string& name, std::initializer_list<int64_t> shape,
                    WeightType type);
// Plain numbers.
TensorView GetScales(const WeightSource& weights, const std::string& name, std::initializer_list<int64_t> shape);

// The group of each of `in_features` columns: runs of `group_size`, -1 for one group.
std::vector<int32_t> RunsOfGroups(int64_t in_features, int64_t group_size);
// As an I32 tensor `name` has them; each is below num_groups.
std::vector<int32_t> ReadGroupIndex(const WeightSource& weights, const std::string& name, int64_t in_features,
                                    int64_t num_groups);

// Number of groups of `group_size` columns, -1 for one.
int64_t NumGroups(int64_t in_features, int64_t group_size);

inline uint32_t LoadWord(const std::byte* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

}  // namespace vllm
