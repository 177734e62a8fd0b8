#include "engine/layers/linear/linear_weight.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/layers/linear/calibration_run.h"
#include "engine/layers/linear/linear_weight_builder.h"
#include "kernels/threading/check.h"

namespace vllm {

namespace {

// Columns of a slice in a run. The sums of two slices and 512 rows take a quarter of 2 MiB of L2.
constexpr int64_t kRunColumns = kernels::kScaleColumns;
static_assert(kRunColumns % kernels::kPanelRows == 0);
// A smaller result stays in the L2 cache as a whole.
constexpr int64_t kMinBytesInRuns = 1 << 20;
// With fewer runs, threads would wait too long for the last ones.
constexpr int64_t kMinRunsPerThread = 8;
constexpr int64_t kMaxSlices = 2;

int64_t RunFloats(int64_t num_rows, int64_t num_slices) { return num_slices * num_rows * kRunColumns; }

}  // namespace

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

void LinearWeight::ReserveRuns(const StepContext& step, int64_t max_rows, int64_t num_slices) {
  kernels::AlignedBuffer& buffer = step.workspace->output_runs;
  const auto floats = static_cast<size_t>(step.threads->num_threads() * RunFloats(max_rows, num_slices));
  if (buffer.size_bytes() < floats * sizeof(float)) buffer = kernels::AlignedBuffer(floats * sizeof(float));
}

bool LinearWeight::MultiplyInRuns(const StepContext& step, const float* bias, const float* x, int64_t x_stride,
                                  int64_t num_rows, int64_t num_slices,
                                  const std::function<void(const OutputRun&)>& use) const {
  VLLM_CHECK(num_slices >= 1 && num_slices <= kMaxSlices && num_rows_ % num_slices == 0);
  const int64_t size = num_rows_ / num_slices;
  const int64_t num_runs = (size + kRunColumns - 1) / kRunColumns;
  if (calibration_run_ != nullptr || num_runs < kMinRunsPerThread * step.threads->num_threads() ||
      num_rows * num_rows_ * int64_t{sizeof(float)} < kMinBytesInRuns) {
    return false;
  }
  std::array<RowsInMatrix, kMaxSlices> slices;
  std::optional<kernels::PackedActivationsView> packed;
  for (int64_t i = 0; i < num_slices; ++i) {
    const std::optional<RowsInMatrix> rows = Find({i * size, size});
    if (!rows) return false;
    const auto view = rows->matrix->PackedX(step, num_rows, step.workspace->packed_activations);
    if (!view || (packed && *packed != *view)) return false;
    packed = view;
    slices[static_cast<size_t>(i)] = *rows;
  }
  slices.front().matrix->Pack(step, x, x_stride, *packed);
  ReserveRuns(step, num_rows, num_slices);
  float* const scratch = step.workspace->output_runs.as<float>();
  step.threads->ParallelFor(num_runs, [&](int64_t task, int thread) {
    const int64_t begin = task * kRunColumns;
    const OutputRun run{begin, std::min(kRunColumns, size - begin), scratch + thread * RunFloats(num_rows, num_slices)};
    for (int64_t i = 0; i < num_slices; ++i) {
      const RowsInMatrix& slice = slices[static_cast<size_t>(i)];
      const float* const run_bias = bias == nullptr ? nullptr : bias + i * size + begin;
      slice.matrix->MultiplyRows(step, *packed, {slice.rows.begin + begin, run.count}, run_bias,
                                 run.y + i * num_rows * run.count, run.count);
    }
    use(run);
  });
  return true;
}

std::optional<LinearWeight::RowsInMatrix> LinearWeight::Find(const Shard& rows) const {
  for (const Part& part : parts_) {
    const int64_t local = rows.begin - part.first_row;
    if (local >= part.matrix.num_rows()) continue;
    const std::optional<Shard> stored = part.matrix.StoredRows({local, rows.count});
    if (!stored) return std::nullopt;
    return RowsInMatrix{&part.matrix, *stored};
  }
  return std::nullopt;
}

void LinearWeight::UnpackRow(const StepContext& step, int64_t row, int thread, float* out) const {
  for (const Part& part : parts_) {
    const int64_t local = row - part.first_row;
    if (local < part.matrix.num_rows()) return part.matrix.UnpackRow(step, local, thread, out);
  }
}

}  // namespace vllm
