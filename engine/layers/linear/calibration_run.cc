#include "engine/layers/linear/calibration_run.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "engine/model_loader/calibration/error_compensation.h"
#include "kernels/matrix/packed_quant_matrix.h"

namespace vllm {

namespace {

using kernels::kPanelRows;
static_assert(ErrorCompensation::kRows == kPanelRows);

}  // namespace

int64_t CalibrationRun::AddLayer(std::vector<CalibratedSlice> slices, int64_t num_columns) {
  Layer layer;
  for (const CalibratedSlice& slice : slices) layer.num_rows += slice.count;
  layer.slices = std::move(slices);
  layer.num_columns = num_columns;
  widest_input_ = std::max(widest_input_, layer.num_columns);
  widest_output_ = std::max(widest_output_, layer.num_rows);
  layers_.push_back(std::move(layer));
  return num_layers() - 1;
}

void CalibrationRun::SetTokens(int64_t num_tokens) {
  num_tokens_ = num_tokens;
  SetAllRows();
}

void CalibrationRun::SetAllRows() {
  num_rows_ = 2 * num_tokens_;
  num_original_ = num_tokens_;
  tokens_.clear();
  for (int64_t i = 0; i < num_tokens_; ++i) tokens_.push_back({i, num_tokens_ + i});
}

void CalibrationRun::SetRows(std::span<const RoutedRow> rows) {
  const auto second = std::ranges::lower_bound(rows, num_tokens_, {}, &RoutedRow::row);
  num_rows_ = std::ssize(rows);
  num_original_ = second - rows.begin();
  tokens_.clear();
  auto other = second;
  for (auto row = rows.begin(); row != second; ++row) {
    other = std::find_if(other, rows.end(), [&](const RoutedRow& r) { return r.row >= row->row + num_tokens_; });
    if (other == rows.end()) break;
    if (other->row == row->row + num_tokens_) tokens_.push_back({row - rows.begin(), other - rows.begin()});
  }
}

void CalibrationRun::Multiply(const StepContext& step, int64_t layer_index, const LinearMatrix& original,
                              const LinearCall& call) {
  Layer& layer = layers_[static_cast<size_t>(layer_index)];
  if (call.num_rows != num_rows_ || tokens_.empty()) return original.Multiply(step, call);
  LinearCall first = call, second = call;
  first.num_rows = num_original_;
  second.num_rows -= num_original_;
  second.x += num_original_ * call.x_stride;
  second.y += num_original_ * call.y_stride;
  original.Multiply(step, first);
  if (!layer.quantized) Quantize(step, original, call, layer);
  layer.quantized->Multiply(step, second);
}

void CalibrationRun::Quantize(const StepContext& step, const LinearMatrix& original, const LinearCall& call,
                              Layer& layer) {
  const ForEach for_each = [&step](int64_t count, const std::function<void(int64_t i)>& f) {
    step.threads->ParallelFor(count, [&f](int64_t i, int /*thread*/) { f(i); });
  };
  const int64_t num_columns = layer.num_columns;
  const ErrorCompensation compensation(
      *step.kernels, MeasureMoments(*step.kernels, call.x, call.x_stride, num_columns, tokens_, for_each), for_each);
  const auto codes = std::make_shared<CalibratedMatrix>(layer.num_rows, num_columns);
  kernels::PackedQuantMatrix packed(kernels::kInt4Form, layer.num_rows, num_columns);
  step.threads->ParallelFor(packed.view().num_panels(), [&](int64_t panel, int thread) {
    const auto columns = static_cast<size_t>(num_columns), num_scales = static_cast<size_t>(codes->num_scales());
    std::vector<float> row_values(columns), values(columns * kPanelRows), scales(num_scales * kPanelRows);
    std::vector<uint8_t> row_codes(values.size());
    const int64_t begin = panel * kPanelRows, end = std::min(layer.num_rows, begin + kPanelRows);
    for (int64_t row = begin; row < end; ++row) {
      original.UnpackRow(step, row, thread, row_values.data());
      for (size_t k = 0; k < columns; ++k) values[k * kPanelRows + static_cast<size_t>(row - begin)] = row_values[k];
    }
    compensation.QuantizeRows(values.data(), row_codes.data(), scales.data());
    for (int64_t row = begin; row < end; ++row) {
      const auto r = static_cast<size_t>(row - begin);
      codes->SetRow(row, row_codes.data() + r * columns, scales.data() + r * num_scales);
      packed.SetRow(row, {row_codes.data() + r * columns, scales.data() + r * num_scales});
    }
  });
  int64_t first_row = 0;
  for (const CalibratedSlice& slice : layer.slices) {
    weights_.Add(slice.name, slice.begin, slice.count, codes, first_row);
    first_row += slice.count;
  }
  layer.quantized.emplace(std::move(packed));
  layer.quantized->Reserve(step, call.num_rows);
  if (num_done_ != nullptr) ++*num_done_;
}

CalibratedWeights CalibrationRun::TakeWeights() {
  layers_.clear();
  return std::exchange(weights_, {});
}

}  // namespace vllm
