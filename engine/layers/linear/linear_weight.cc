#include "engine/layers/linear/linear_weight.h"

#include <algorithm>
#include <utility>

#include "engine/layers/linear/calibration_run.h"
#include "engine/layers/linear/linear_weight_builder.h"

namespace vllm {

LinearWeight::LinearWeight(const LoadContext& load, const ModelConfig& model, const LinearRows& rows,
                           int64_t in_features, Use use)
    : num_columns_(in_features) {
  LinearWeightBuilder builder(load, model, rows, in_features, use == Use::kVocabulary);
  for (LinearMatrix& matrix : builder.Build()) {
    const int64_t first_row = num_rows_;
    num_rows_ += matrix.num_rows();
    parts_.push_back({first_row, std::move(matrix)});
  }
  if (load.calibration_run == nullptr || use != Use::kLinear || !builder.may_be_quantized()) return;
  calibration_run_ = load.calibration_run;
  std::vector<CalibratedSlice> calibrated;
  for (const OutputSlice& slice : rows.all) calibrated.push_back({slice.name, slice.shard.begin, slice.shard.count});
  calibration_layer_ = calibration_run_->AddLayer(std::move(calibrated), num_columns_);
}

size_t LinearWeight::size_bytes() const {
  size_t bytes = 0;
  for (const Part& part : parts_) bytes += part.matrix.size_bytes();
  return bytes;
}

void LinearWeight::Reserve(const StepContext& step, int64_t max_rows) const {
  for (const Part& part : parts_) part.matrix.Reserve(step, max_rows);
}

void LinearWeight::Multiply(const StepContext& step, const float* bias, const float* x, int64_t x_stride,
                            int64_t num_rows, float* y, int64_t y_stride) const {
  if (calibration_run_ != nullptr) {
    return calibration_run_->Multiply(step, calibration_layer_, parts_.front().matrix,
                                      {bias, x, x_stride, num_rows, y, y_stride});
  }
  for (const Part& part : parts_) {
    part.matrix.Multiply(
        step, {bias == nullptr ? nullptr : bias + part.first_row, x, x_stride, num_rows, y + part.first_row, y_stride});
  }
}

void LinearWeight::UnpackRow(const StepContext& step, int64_t row, int thread, float* out) const {
  for (const Part& part : parts_) {
    const int64_t local = row - part.first_row;
    if (local < part.matrix.num_rows()) return part.matrix.UnpackRow(step, local, thread, out);
  }
}

}  // namespace vllm
