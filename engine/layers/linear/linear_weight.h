// LinearWeight: a rank's matrix of a linear layer, made from a checkpoint's tensors: one LinearMatrix, or several where
// stacked tensors are stored in different ways.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/linear/linear_matrix.h"
#include "engine/layers/load_context.h"

namespace vllm {

// Rows [shard.begin, + count) of a checkpoint's matrix `name`.weight [total_rows, in_features] (and `name`.bias), or of
// the tensors that a quantized checkpoint has in its place. A part of a fused tensor is a shard that begins there.
struct OutputSlice {
  std::string name;
  int64_t total_rows = 0;
  Shard shard;
};

class LinearWeight {
 public:
  enum class Use : uint8_t { kLinear, kVocabulary };

  LinearWeight() = default;
  // The slices' rows stacked, columns [columns.begin, + count) of in_features. A vocabulary's matrix is never stored
  // transposed and is always multiplied by our kernels. Throws ModelError when a tensor cannot be used; ConfigError
  // when OpenBLAS is wanted for anything but float32, ResourceError when it cannot be loaded.
  LinearWeight(const LoadContext& load, const ModelConfig& model, const std::vector<OutputSlice>& slices,
               int64_t in_features, Shard columns, Use use = Use::kLinear);

  int64_t num_rows() const { return num_rows_; }
  int64_t num_columns() const { return num_columns_; }
  size_t size_bytes() const;

  // Makes room in the rank's buffers for Multiply with up to `max_rows` rows of x.
  void Reserve(const StepContext& step, int64_t max_rows) const;
  // y [num_rows of x, num_rows()] = x w^T + bias, on the rank's threads; bias may be null.
  void Multiply(const StepContext& step, const float* bias, const float* x, int64_t x_stride, int64_t num_rows,
                float* y, int64_t y_stride) const;

  // One row as float32, for embedding lookups; out has num_columns() values.
  void UnpackRow(const StepContext& step, int64_t row, float* out) const;

 private:
  struct Part {
    int64_t first_row = 0;
    LinearMatrix matrix;
  };
  // Neighbouring tensors of plain numbers, which become one matrix.
  struct PlainRows;

  void RefuseOpenBlas() const;
  void Add(LinearMatrix matrix);
  // In the form of the integer kernels, or not at all.
  bool AddCodes(const LoadContext& load, const ModelConfig& model, const CheckpointQuantMatrixView& stored,
                const std::vector<int32_t>& column_order, const std::string& name, const ForEach& for_each);
  void AddStored(const LoadContext& load, const ModelConfig& model, CheckpointMatrix stored, const std::string& name,
                 const ForEach& for_each);
  void AddBlocks(const LoadContext& load, const ModelConfig& model, const TensorView& view, const MatrixPart& part,
                 const std::string& name, const ForEach& for_each);
  void AddPlain(const LoadContext& load, const ModelConfig& model, const PlainRows& rows, Use use);

  int64_t num_rows_ = 0;
  int64_t num_columns_ = 0;
  const OpenBlas* open_blas_ = nullptr;
  std::vector<Part> parts_;
};

}  // namespace vllm
