// HeadLinear: one matrix for each attention head of a rank, [out_features, in_features], built from the rows of one
// checkpoint matrix. It is stored in the model's floating-point type, also if the checkpoint is quantized, and inputs
// stay float32. Owned by an MLAAttention. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/load_context.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

// Head h has rows [h * rows_per_head + first_row, ... + num_rows) of the checkpoint matrix `name`.weight, which has
// num_columns columns. The head's matrix is these rows, or their transpose.
struct HeadRows {
  std::string name;
  int64_t num_heads = 0;  // on all ranks
  int64_t rows_per_head = 0;
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t num_columns = 0;
  bool transposed = false;
};

// Vectors of all heads: those of row r and head h begin at data + r * row_stride + h * head_stride.
template <typename T>
struct HeadVectors {
  T* data = nullptr;
  int64_t row_stride = 0;
  int64_t head_stride = 0;
};

class HeadLinear {
 public:
  // Throws ModelError if the tensor is missing or cannot be used.
  HeadLinear(const LoadContext& load, const ModelConfig& model, const HeadRows& rows, Shard heads);

  // Multiplies the vectors of each head by its matrix. The result of a row does not depend on the other rows.
  void Forward(HeadVectors<const float> x, int64_t num_rows, HeadVectors<float> y) const;

 private:
  const StepContext& step_;
  std::vector<kernels::PackedMatrix> matrices_;  // [num_heads]
};

}  // namespace vllm
