// CalibrationRun: quantizes the linear layers of a model one after the other, while the model reads a calibration text.
// One step reads the text twice. The first half of its rows is the unquantized model. The second half has the same
// tokens in the same order, and each layer multiplies them by its quantized weights. So the inputs of a layer in the
// two halves are those that ErrorCompensation compares. A call with the inputs of all tokens quantizes its layer
// between the two halves. Owned by MeasuredCalibration; used on the thread of the one rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/layers/linear/linear_matrix.h"
#include "engine/layers/moe_workspace.h"
#include "engine/layers/step_context.h"
#include "engine/model_loader/calibration/calibrated_weights.h"
#include "engine/model_loader/calibration/layer_moments.h"

namespace vllm {

// Rows [begin, begin + count) of the checkpoint matrix `name`.
struct CalibratedSlice {
  std::string name;
  int64_t begin = 0;
  int64_t count = 0;
};

class CalibrationRun {
 public:
  // `num_done` counts the layers that have been quantized, and is borrowed. It may be null.
  explicit CalibrationRun(std::atomic<int64_t>* num_done = nullptr) : num_done_(num_done) {}

  // Adds a layer, whose matrix consists of the rows of the slices, and returns its index.
  int64_t AddLayer(std::vector<CalibratedSlice> slices, int64_t num_columns);
  int64_t num_layers() const { return static_cast<int64_t>(layers_.size()); }
  // Returns the largest number of inputs and outputs of a layer.
  int64_t widest_input() const { return widest_input_; }
  int64_t widest_output() const { return widest_output_; }

  // Sets the number of tokens of the text. The step has twice as many rows.
  void SetTokens(int64_t num_tokens);
  // Says that the next layers have these rows of the step as inputs, which are in ascending order, or all rows.
  void SetRows(std::span<const RoutedRow> rows);
  void SetAllRows();
  // Computes `call` with `original`, the unquantized matrix of the layer, for the first half and with the quantized
  // one for the second. Quantizes the layer if it has not been. A layer whose inputs are neither all rows of the step
  // nor those of SetRows, or that has no token in both halves, computes all of them with `original`. Throws
  // std::bad_alloc.
  void Multiply(const StepContext& step, int64_t layer, const LinearMatrix& original, const LinearCall& call);

  // Returns the weights of the layers that were quantized, and leaves this object empty.
  CalibratedWeights TakeWeights();

 private:
  struct Layer {
    std::vector<CalibratedSlice> slices;
    int64_t num_rows = 0;
    int64_t num_columns = 0;
    std::optional<LinearMatrix> quantized;
  };
  void Quantize(const StepContext& step, const LinearMatrix& original, const LinearCall& call, Layer& layer);

  std::atomic<int64_t>* num_done_;
  std::vector<Layer> layers_;
  int64_t widest_input_ = 0, widest_output_ = 0;
  int64_t num_tokens_ = 0;
  // The inputs of the next layers: how many there are, how many of them are in the first half, and which tokens are in
  // both halves.
  int64_t num_rows_ = 0, num_original_ = 0;
  std::vector<TokenRows> tokens_;
  CalibratedWeights weights_;
};

}  // namespace vllm
