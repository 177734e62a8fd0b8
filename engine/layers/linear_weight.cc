#include "engine/layers/linear_weight.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/config/errors.h"

namespace vllm {

namespace {

// Below this many multiply-adds a job costs less than waking another thread for it.
constexpr int64_t kMinWorkPerTask = 1 << 18;
// A task covers whole groups of panels, so that the widest tile of any instruction set fits.
constexpr int64_t kPanelsPerGroup = 8;

}  // namespace

void MultiplyPacked(const RankContext& context, const PackedMatrixView& w, const float* bias, const float* x,
                    int64_t x_stride, int64_t num_rows, float* y, int64_t y_stride) {
  const int64_t num_panels = w.num_panels();
  const int64_t work_per_group = num_rows * w.num_columns * kPanelRows * kPanelsPerGroup;
  const int64_t num_groups = (num_panels + kPanelsPerGroup - 1) / kPanelsPerGroup;
  // Four tasks a thread even out threads of unequal speed.
  const int64_t wanted_tasks = context.threads->num_threads() * int64_t{4};
  int64_t groups_per_task = std::max<int64_t>(1, num_groups / wanted_tasks);
  groups_per_task =
      std::max(groups_per_task, (kMinWorkPerTask + work_per_group - 1) / std::max<int64_t>(1, work_per_group));
  const int64_t panels_per_task = groups_per_task * kPanelsPerGroup;
  const int64_t num_tasks = (num_panels + panels_per_task - 1) / panels_per_task;
  context.threads->ParallelFor(num_tasks, [&](int64_t task, int /*thread*/) {
    const int64_t begin = task * panels_per_task;
    context.kernels->linear(x, x_stride, num_rows, w, bias, y, y_stride, begin,
                            std::min(num_panels, begin + panels_per_task));
  });
}

LinearWeight::LinearWeight(const RankContext& context, int64_t num_rows, int64_t num_columns, DType dtype)
    : num_rows_(num_rows), num_columns_(num_columns) {
  if (context.linear_backend == LinearBackend::kNative) {
    packed_ = PackedMatrix(num_rows, num_columns, dtype);
    return;
  }
  if (dtype != DType::kFloat32) {
    throw ConfigError("--linear-backend: openblas computes in float32 only (--dtype " + std::string(ToString(dtype)) +
                      ")");
  }
  std::string why;
  open_blas_ = OpenBlas::Get(why);
  if (open_blas_ == nullptr) throw ResourceError("cannot load OpenBLAS: " + why);
  dense_ = AlignedBuffer(static_cast<size_t>(num_rows * num_columns) * sizeof(float));
}

void LinearWeight::FillRow(const std::byte* source, DType dtype, int64_t row) {
  if (open_blas_ == nullptr) {
    packed_.PackRows(source, dtype, 0, row, 1);
  } else {
    ConvertToFloat(source, dtype, num_columns_, dense_.as<float>() + row * num_columns_);
  }
}

void LinearWeight::FillRows(const TensorView& source, bool transposed, Shard rows, int64_t first_column,
                            int64_t first_row) {
  const DType dtype = source.dtype();
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  if (!transposed) {
    for (int64_t i = 0; i < rows.count; ++i) {
      FillRow(source.Row(rows.begin + i) + first_column * size, dtype, first_row + i);
    }
    return;
  }
  std::vector<float> row(static_cast<size_t>(num_columns_));
  for (int64_t i = 0; i < rows.count; ++i) {
    for (int64_t k = 0; k < num_columns_; ++k) {
      ConvertToFloat(source.Row(first_column + k) + (rows.begin + i) * size, dtype, 1, &row[static_cast<size_t>(k)]);
    }
    FillRow(reinterpret_cast<const std::byte*>(row.data()), DType::kFloat32, first_row + i);
  }
}

void LinearWeight::Multiply(const RankContext& context, const float* bias, const float* x, int64_t x_stride,
                            int64_t num_rows, float* y, int64_t y_stride) const {
  if (open_blas_ != nullptr) {
    MultiplyDense(context, bias, x, x_stride, num_rows, y, y_stride);
  } else {
    MultiplyPacked(context, packed_.view(), bias, x, x_stride, num_rows, y, y_stride);
  }
}

void LinearWeight::MultiplyDense(const RankContext& context, const float* bias, const float* x, int64_t x_stride,
                                 int64_t num_rows, float* y, int64_t y_stride) const {
  const int64_t rows_per_task =
      std::max<int64_t>(64, (num_rows_ + context.threads->num_threads() - 1) / context.threads->num_threads());
  const int64_t num_tasks = (num_rows_ + rows_per_task - 1) / rows_per_task;
  context.threads->ParallelFor(num_tasks, [&](int64_t task, int /*thread*/) {
    const int64_t begin = task * rows_per_task;
    const int64_t count = std::min(rows_per_task, num_rows_ - begin);
    open_blas_->Multiply(x, x_stride, num_rows, dense_.as<float>() + begin * num_columns_, count, num_columns_,
                         y + begin, y_stride);
    if (bias == nullptr) return;
    for (int64_t row = 0; row < num_rows; ++row) context.kernels->add(y + row * y_stride + begin, bias + begin, count);
  });
}

}  // namespace vllm
