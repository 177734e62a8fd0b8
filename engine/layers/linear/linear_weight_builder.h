// LinearWeightBuilder: builds the matrices of a LinearWeight from checkpoint tensors. Used once, during load, on the
// rank's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/linear/linear_matrix.h"
#include "engine/layers/linear/linear_rows.h"
#include "engine/layers/load_context.h"
#include "engine/model_loader/quantization/checkpoint_matrix.h"

namespace vllm {

class LinearWeightBuilder {
 public:
  // Borrows all arguments. See the constructor of LinearWeight.
  LinearWeightBuilder(const LoadContext& load, const ModelConfig& model, const LinearRows& rows, int64_t in_features,
                      bool is_vocabulary);

  // Returns the matrices whose stacked rows are those of the rank. Throws as LinearWeight does.
  std::vector<LinearMatrix> Build();
  // Returns true if all weights are in floating point and no router depends on them. Valid after Build.
  bool may_be_quantized() const { return may_be_quantized_; }

 private:
  // Adjacent slices with floating-point weights, which become one matrix.
  struct FloatRows;
  // A matrix of such slices, on all ranks or on this one.
  struct FloatMatrix {
    int64_t num_rows = 0;
    std::vector<Shard> sources;  // its rows, in the stacked rows of the slices
    std::vector<Shard> ranges;   // those of its rows that this rank has
    kernels::BufferSource buffers;
    Claims* claims = nullptr;  // as in SharedMatrixMemory
  };
  // Rows of a slice in the format of the checkpoint.
  struct StoredRows;
  // Rows of all ranks that become one matrix, or one on each rank.
  struct Part {
    int64_t num_rows = 0;
    std::vector<Shard> own;  // this rank's rows, in the order of the result
    bool is_shared = false;  // the rows of each rank begin at panels
  };

  // Returns the part that has rows [first_row, first_row + num_rows) of the stacked rows of all ranks.
  Part MakePart(int64_t first_row, int64_t num_rows) const;
  void RejectOpenBlas() const;

  // Returns the part's rows on this rank, each range for itself, or nothing if the slice has floating-point weights. If
  // the rank has no rows, the result has the first row, so that its format is known.
  std::vector<StoredRows> LoadStored(const OutputSlice& slice, const Part& part) const;
  void AddStored(const OutputSlice& slice, const Part& part, std::vector<StoredRows> stored);
  // Adds the rows in the format of the integer kernels. With --dtype float32, or if the codes or their scales do not
  // fit that format, adds nothing and returns false, on all ranks.
  bool PackStored(const OutputSlice& slice, const Part& part, const std::vector<StoredRows>& stored);
  // Returns true if the scales of all ranks fit. All ranks call it together if the rows are split.
  bool ScalesFit(const std::vector<StoredRows>& stored, const kernels::PackedQuantForm& form) const;

  FloatMatrix FloatMatrixOf(const FloatRows& floats, const Part& part) const;
  // Calls f(panel, sources) on the rank's threads for each panel of the matrix that this rank has to fill. `sources`
  // are the stacked rows of the floats that belong to the panel.
  template <typename F>
  void Fill(const FloatMatrix& matrix, const F& f) const;
  void AddFloats(const FloatRows& floats);
  void QuantizeFloats(const FloatRows& floats, const FloatMatrix& to);
  // Fills the matrix with the codes of the calibration. Returns false if it does not have all rows.
  bool CopyCalibrated(const FloatRows& floats, const FloatMatrix& to, kernels::PackedQuantMatrix& matrix) const;
  void CopyFloats(const FloatRows& floats, const FloatMatrix& to);
  void PackFloats(const FloatRows& floats, const FloatMatrix& to);

  const LoadContext& load_;
  const ModelConfig& model_;
  const LinearRows& rows_;
  const int64_t in_features_;
  const bool is_vocabulary_;
  const bool is_transposed_;
  const kernels::OpenBlas* open_blas_ = nullptr;
  ForEach for_each_;
  std::vector<std::vector<Shard>> ranges_;  // of each rank, in the stacked rows of all ranks
  bool may_be_quantized_ = false;
  std::vector<LinearMatrix> matrices_;
};

}  // namespace vllm
