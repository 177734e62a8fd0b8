// Gets the tensors of a quantized layer, checks their types and shapes, and reads words of packed codes. Pure
// functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/model_loader/weights.h"

namespace vllm {

// Throws ModelError.
[[noreturn]] void RejectTensor(const std::string& name, const std::string& why);

// Throws ModelError if the tensor is missing or its type or shape differs.
TensorView GetTyped(const WeightSource& weights, const std::string& name, std::initializer_list<int64_t> shape,
                    kernels::WeightType type);
// Returns a tensor of float32, float16 or bfloat16. Throws ModelError like GetTyped.
TensorView GetScales(const WeightSource& weights, const std::string& name, std::initializer_list<int64_t> shape);

// Returns the group of each of `in_features` columns if each run of `group_size` columns is a group. A group_size of -1
// means one group.
std::vector<int32_t> RunsOfGroups(int64_t in_features, int64_t group_size);
// Returns the group of each column from the I32 tensor `name`. Throws ModelError if a group is not in [0, num_groups).
std::vector<int32_t> ReadGroupIndex(const WeightSource& weights, const std::string& name, int64_t in_features,
                                    int64_t num_groups);

// Returns the number of groups of `group_size` columns. A group_size of -1 means one group.
int64_t NumGroups(int64_t in_features, int64_t group_size);

// Loads 32 bits from a pointer that may be unaligned.
inline uint32_t LoadWord(const std::byte* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

}  // namespace vllm
