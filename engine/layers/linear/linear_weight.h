// LinearWeight: a rank's matrix of a linear layer, built from checkpoint tensors. It has one LinearMatrix for each
// tensor that is quantized in the checkpoint and one for each run of adjacent floating-point tensors. The ranks share
// the packed form of a tensor, or of such a run, if each rank's rows begin at panels of PackedMatrix. Owned by a layer.
// Built at load, then used by the rank's thread. Weights that are quantized in the checkpoint are packed for the
// integer kernels if PackedFormOf returns a form for them and float16 is precise enough for their scales. Otherwise,
// and always with --dtype float32, they keep the checkpoint's format.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/layers/linear/linear_matrix.h"
#include "engine/layers/linear/linear_rows.h"
#include "engine/layers/load_context.h"

namespace vllm {

// Columns [begin, begin + count) of each slice of a result. gate and up are two slices, for example.
struct OutputRun {
  int64_t begin = 0;   // a multiple of kScaleColumns
  int64_t count = 0;   // kScaleColumns, except at the end
  float* y = nullptr;  // [slices, num_rows, count]; the receiver may change it
};

class LinearWeight {
 public:
  enum class Use : uint8_t { kLinear, kVocabulary };

  LinearWeight() = default;
  // Stacks the rank's rows. A vocabulary matrix is never stored transposed and never uses OpenBLAS. If the rows
  // are split, all ranks call it together. Throws ModelError if a tensor cannot be used, ConfigError if OpenBLAS is
  // selected without --dtype float32 or for quantized weights, or if --quantization is set and the weights are already
  // quantized, and ResourceError if OpenBLAS cannot be loaded.
  LinearWeight(const LoadContext& load, const ModelConfig& model, const LinearRows& rows, int64_t in_features,
               Use use = Use::kLinear);

  int64_t num_rows() const { return num_rows_; }
  int64_t num_columns() const { return num_columns_; }
  size_t size_bytes() const;
  // Returns the matrix if it is the only one and is not being calibrated, else null.
  const LinearMatrix* matrix() const {
    return parts_.size() == 1 && calibration_run_ == nullptr ? &parts_[0].matrix : nullptr;
  }

  // Reserves the rank's scratch for UnpackRow, and for Multiply with up to `max_rows` rows of x.
  void Reserve(const StepContext& step, int64_t max_rows) const;
  // Computes y [rows of x, num_rows()] = x w^T + bias on the rank's threads. `bias` may be null.
  void Multiply(const StepContext& step, const float* bias, const float* x, int64_t x_stride, int64_t num_rows,
                float* y, int64_t y_stride) const;

  // Like Multiply, for a large result that is read only once. Its columns are one slice, or two of equal size. Computes
  // runs of columns, and calls use(run) on the thread that has computed the run, while it is in the L2 cache. Returns
  // false, without calling `use`, if the result is small or the matrices do not allow it. Then call Multiply.
  bool MultiplyInRuns(const StepContext& step, const float* bias, const float* x, int64_t x_stride, int64_t num_rows,
                      int64_t num_slices, const std::function<void(const OutputRun&)>& use) const;
  // Reserves the rank's scratch for MultiplyInRuns, in addition to that of Reserve.
  static void ReserveRuns(const StepContext& step, int64_t max_rows, int64_t num_slices);

  // Writes one row as float32 to out, [num_columns()], for embedding lookups. See LinearMatrix::UnpackRow.
  void UnpackRow(const StepContext& step, int64_t row, int thread, float* out) const;

 private:
  struct Part {
    int64_t first_row = 0;
    LinearMatrix matrix;
  };
  // Rows of one of the matrices, see LinearMatrix::StoredRows.
  struct RowsInMatrix {
    const LinearMatrix* matrix = nullptr;
    Shard rows;
  };
  // Returns nullopt if no matrix stores all of `rows` next to each other, from a panel on.
  std::optional<RowsInMatrix> Find(const Shard& rows) const;

  int64_t num_rows_ = 0;
  int64_t num_columns_ = 0;
  CalibrationRun* calibration_run_ = nullptr;  // null: not of a model that reads a calibration text
  int64_t calibration_layer_ = 0;              // the index in calibration_run_
  std::vector<Part> parts_;
};

}  // namespace vllm
