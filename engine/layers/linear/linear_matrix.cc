#include "engine/layers/linear/linear_matrix.h"

#include <algorithm>
#include <optional>

#include "engine/layers/for_each_row.h"
#include "kernels/threading/check.h"

namespace vllm {

namespace {

// Below this many multiply-adds, waking another thread costs more than it saves.
constexpr int64_t kMinWorkPerTask = 1 << 18;
// A task has at most about this many multiply-adds, unless a single group has more. A step can be cancelled only
// between tasks, so tasks must be short. The slowest kernels do about 2e9 multiply-adds per second.
constexpr int64_t kMaxWorkPerTask = 1 << 28;
// Fast threads take over tasks of slow ones. At the end they wait for the last task, so tasks are small.
constexpr int64_t kTasksPerThread = 16;
// An AMX kernel reads x again in each task if x has more than this many bytes. Then a task has at least
// kMinPanelsOfLargeX panels, unless some threads would have no task. Such a task may have more multiply-adds, up to
// about kMaxWorkOfLargeX, because AMX does over 1e11 per second.
constexpr int64_t kMaxCachedX = 1 << 20, kMinPanelsOfLargeX = 8, kMaxWorkOfLargeX = int64_t{1} << 32;
// Cost of packing one value of x, in multiply-adds.
constexpr int64_t kPackingWork = 16;
// A task computes whole groups of panels, because a kernel's tile can span several panels. With few rows of x, a tile
// can span more panels, so groups are larger.
constexpr int64_t kPanelsPerGroup = 2;
constexpr int64_t kFewRows = 4, kPanelsPerGroupOfFewRows = 4;
// A task computes whole groups of stored rows, because the kernels process several stored rows per pass.
constexpr int64_t kStoredRowsPerGroup = 32;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t MaxTasks(const StepContext& step, int64_t work) {
  return std::max(step.threads->num_threads() * kTasksPerThread, work / kMaxWorkPerTask);
}

// Splits [0, count) into runs and calls f(begin, end) for each run, on the rank's threads. Runs start at group
// boundaries, and the numbers of groups in any two runs differ by at most one. There are at most `max_tasks` runs.
template <typename F>
void ForEachRun(const StepContext& step, int64_t count, int64_t group, int64_t work_per_group, int64_t max_tasks,
                F&& f) {
  const int64_t num_groups = CeilDiv(count, group);
  const int64_t num_useful_tasks = num_groups * work_per_group / kMinWorkPerTask + 1;
  const int64_t num_tasks = std::min({num_groups, num_useful_tasks, max_tasks});
  step.threads->ParallelFor(num_tasks, [&](int64_t task, int /*thread*/) {
    f(num_groups * task / num_tasks * group, std::min(count, num_groups * (task + 1) / num_tasks * group));
  });
}

int64_t NumPanels(const Shard& range) { return CeilDiv(range.count, kernels::kPanelRows); }

int64_t TotalPanels(const std::vector<Shard>& ranges) {
  int64_t num_panels = 0;
  for (const Shard& range : ranges) num_panels += NumPanels(range);
  return num_panels;
}

// Returns the most tasks in which `x` is multiplied by the panels of a matrix.
int64_t MaxTasks(const StepContext& step, const kernels::PackedActivationsView& x, int64_t num_panels) {
  const int64_t bytes = x.num_rows * x.num_units * static_cast<int64_t>(sizeof(*x.units));
  if (x.tile_rows != kernels::kAmxTileRows || bytes <= kMaxCachedX) {
    return MaxTasks(step, num_panels * kernels::kPanelRows * x.num_rows * x.num_columns);
  }
  const int64_t num_threads = step.threads->num_threads();
  const int64_t work = num_panels * kernels::kPanelRows * x.num_rows * x.num_columns;
  return std::max(num_threads * std::clamp(num_panels / num_threads / kMinPanelsOfLargeX, int64_t{1}, kTasksPerThread),
                  work / kMaxWorkOfLargeX);
}

// Calls f(range, begin, end, first_row) for runs of panels of all ranges, on the rank's threads. The run has panels
// [begin, end) of the range, whose first row is row first_row of the result.
template <typename F>
void ForEachRunOfPanels(const StepContext& step, int64_t num_rows, int64_t num_columns,
                        const std::vector<Shard>& ranges, int64_t max_tasks, F&& f) {
  const int64_t group = num_rows <= kFewRows ? kPanelsPerGroupOfFewRows : kPanelsPerGroup;
  ForEachRun(step, TotalPanels(ranges), group, num_rows * num_columns * kernels::kPanelRows * group, max_tasks,
             [&](int64_t begin, int64_t end) {
               int64_t first_panel = 0, first_row = 0;
               for (const Shard& range : ranges) {
                 const int64_t count = NumPanels(range);
                 const int64_t from = std::max(begin - first_panel, int64_t{0});
                 const int64_t to = std::min(end - first_panel, count);
                 if (from < to) f(range, from, to, first_row);
                 first_panel += count;
                 first_row += range.count;
               }
             });
}

const float* BiasAt(const LinearCall& call, int64_t row) { return call.bias == nullptr ? nullptr : call.bias + row; }

// Returns memory of `buffer` for x in the format that the kernel of `matrix` reads, or nullopt if the kernel reads x
// unchanged.
std::optional<kernels::PackedActivationsView> TilesFor(const kernels::PackedMatrix& matrix, const StepContext& step,
                                                       int64_t num_rows, kernels::PackedActivations& buffer) {
  const kernels::PackedMatrixView& w = matrix.view();
  if (w.dtype != kernels::DType::kBFloat16 || step.kernels->tiles->linear_bfloat16 == nullptr) return std::nullopt;
  return buffer.BFloat16(num_rows, w.num_columns, step.kernels->tiles->bfloat16_tile_rows,
                         step.kernels->tiles->bfloat16_columns_per_unit);
}

std::optional<kernels::PackedActivationsView> TilesFor(const kernels::PackedQuantMatrix& matrix,
                                                       const StepContext& step, int64_t num_rows,
                                                       kernels::PackedActivations& buffer) {
  const kernels::CodeSums code_sums = matrix.view().code_sums();
  return buffer.Int8(num_rows, matrix.view().num_columns, code_sums,
                     step.kernels->tiles->Int8TileRows(num_rows, code_sums));
}

std::optional<kernels::PackedActivationsView> TilesFor(const kernels::CheckpointQuantMatrix& /*matrix*/,
                                                       const StepContext& /*step*/, int64_t /*num_rows*/,
                                                       kernels::PackedActivations& /*buffer*/) {
  return std::nullopt;
}

std::optional<kernels::PackedActivationsView> TilesFor(const DenseMatrix& /*matrix*/, const StepContext& /*step*/,
                                                       int64_t /*num_rows*/, kernels::PackedActivations& /*buffer*/) {
  return std::nullopt;
}

using PackFunction = decltype(kernels::TileKernels::pack_int8);

// Returns the kernel that fills the tiles of TilesFor.
PackFunction PackFunctionFor(const kernels::PackedMatrix& /*matrix*/, const StepContext& step) {
  return step.kernels->tiles->pack_bfloat16;
}
PackFunction PackFunctionFor(const kernels::PackedQuantMatrix& /*matrix*/, const StepContext& step) {
  return step.kernels->tiles->pack_int8;
}

// Calls the kernel of `w` for panels [begin, end). y: [x.num_rows, w.num_rows].
void MultiplyPanels(const StepContext& step, const kernels::PackedActivationsView& x,
                    const kernels::PackedMatrixView& w, const LinearCall& call, int64_t begin, int64_t end) {
  step.kernels->tiles->linear_bfloat16(x, w, call.bias, call.y, call.y_stride, begin, end);
}
void MultiplyPanels(const StepContext& step, const kernels::PackedActivationsView& x, const kernels::PackedQuantView& w,
                    const LinearCall& call, int64_t begin, int64_t end) {
  step.kernels->tiles->linear_quant(x, w, call.bias, call.y, call.y_stride, begin, end);
}

// Returns the call that computes the columns of y from `row` on.
LinearCall CallFrom(const LinearCall& call, int64_t row) {
  LinearCall part = call;
  part.bias = BiasAt(call, row);
  part.y += row;
  return part;
}

template <typename Matrix>
void MultiplyTiles(const Matrix& matrix, const std::vector<Shard>& ranges, const StepContext& step,
                   const kernels::PackedActivationsView& x, const LinearCall& call) {
  ForEachRunOfPanels(step, x.num_rows, x.num_columns, ranges, MaxTasks(step, x, TotalPanels(ranges)),
                     [&](const Shard& range, int64_t begin, int64_t end, int64_t row) {
                       MultiplyPanels(step, x, matrix.view().Rows(range.begin, range.count), CallFrom(call, row), begin,
                                      end);
                     });
}

template <typename Matrix>
void PackX(const Matrix& matrix, const StepContext& step, const float* x, int64_t x_stride,
           const kernels::PackedActivationsView& tiles) {
  const PackFunction pack = PackFunctionFor(matrix, step);
  const int64_t work_per_tile = kPackingWork * tiles.tile_rows * tiles.num_columns;
  ForEachRun(step, tiles.num_tiles(), 1, work_per_tile, MaxTasks(step, work_per_tile * tiles.num_tiles()),
             [&](int64_t begin, int64_t end) {
               for (int64_t tile = begin; tile < end; ++tile) pack(x, x_stride, tiles, tile);
             });
}

template <typename Matrix>
void PackAndMultiply(const Matrix& matrix, const std::vector<Shard>& ranges, const StepContext& step,
                     const kernels::PackedActivationsView& tiles, const LinearCall& call) {
  PackX(matrix, step, call.x, call.x_stride, tiles);
  MultiplyTiles(matrix, ranges, step, tiles, call);
}

// Calls f(matrix) for the packed matrix in `matrices`. REQUIRES: it is packed.
template <typename Variant, typename F>
void WithPacked(const Variant& matrices, const F& f) {
  if (const auto* packed = std::get_if<kernels::PackedMatrix>(&matrices)) {
    f(*packed);
  } else {
    f(std::get<kernels::PackedQuantMatrix>(matrices));
  }
}

void MultiplyBy(const kernels::PackedMatrix& matrix, const std::vector<Shard>& ranges, const StepContext& step,
                const LinearCall& call) {
  if (const std::optional<kernels::PackedActivationsView> tiles =
          TilesFor(matrix, step, call.num_rows, step.workspace->packed_activations)) {
    return PackAndMultiply(matrix, ranges, step, *tiles, call);
  }
  const int64_t work = call.num_rows * matrix.num_columns() * TotalPanels(ranges) * kernels::kPanelRows;
  ForEachRunOfPanels(step, call.num_rows, matrix.num_columns(), ranges, MaxTasks(step, work),
                     [&](const Shard& range, int64_t begin, int64_t end, int64_t row) {
                       step.kernels->linear(call.x, call.x_stride, call.num_rows,
                                            matrix.view().Rows(range.begin, range.count), BiasAt(call, row),
                                            call.y + row, call.y_stride, begin, end);
                     });
}

void MultiplyBy(const kernels::PackedQuantMatrix& matrix, const std::vector<Shard>& ranges, const StepContext& step,
                const LinearCall& call) {
  PackAndMultiply(matrix, ranges, step, *TilesFor(matrix, step, call.num_rows, step.workspace->packed_activations),
                  call);
}

void MultiplyBy(const kernels::CheckpointQuantMatrix& matrix, const std::vector<Shard>& /*ranges*/,
                const StepContext& step, const LinearCall& call) {
  const kernels::CheckpointQuantMatrixView& w = matrix.view();
  const int64_t work = call.num_rows * w.num_columns;  // per row of w
  ForEachRun(step, w.num_rows, kStoredRowsPerGroup, work * kStoredRowsPerGroup, MaxTasks(step, work * w.num_rows),
             [&](int64_t begin, int64_t end) {
               step.kernels->quant->linear(call.x, call.x_stride, call.num_rows, w, call.bias, call.y, call.y_stride,
                                           begin, end);
             });
}

void MultiplyBy(const DenseMatrix& matrix, const std::vector<Shard>& /*ranges*/, const StepContext& step,
                const LinearCall& call) {
  const int64_t work_per_row = std::max<int64_t>(1, call.num_rows * matrix.num_columns);
  const int64_t rows_per_task = std::max<int64_t>(
      64, std::min(CeilDiv(matrix.num_rows, step.threads->num_threads()), kMaxWorkPerTask / work_per_row));
  step.threads->ParallelFor(CeilDiv(matrix.num_rows, rows_per_task), [&](int64_t task, int /*thread*/) {
    const int64_t begin = task * rows_per_task;
    const int64_t count = std::min(rows_per_task, matrix.num_rows - begin);
    matrix.blas->Multiply(call.x, call.x_stride, call.num_rows, matrix.values.as<float>() + begin * matrix.num_columns,
                          count, matrix.num_columns, call.y + begin, call.y_stride);
    if (call.bias == nullptr) return;
    for (int64_t row = 0; row < call.num_rows; ++row) {
      step.kernels->add(call.y + row * call.y_stride + begin, call.bias + begin, count);
    }
  });
}

void UnpackRowOf(const kernels::PackedMatrix& matrix, const StepContext& /*step*/, int64_t row, float* out) {
  matrix.UnpackRow(row, out);
}

void UnpackRowOf(const kernels::PackedQuantMatrix& matrix, const StepContext& /*step*/, int64_t row, float* out) {
  matrix.UnpackRow(row, out);
}

void UnpackRowOf(const kernels::CheckpointQuantMatrix& matrix, const StepContext& step, int64_t row, float* out) {
  step.kernels->quant->dequantize(matrix.view(), row, 0, matrix.view().num_columns, out);
}

void UnpackRowOf(const DenseMatrix& matrix, const StepContext& /*step*/, int64_t row, float* out) {
  std::copy_n(matrix.values.as<float>() + row * matrix.num_columns, matrix.num_columns, out);
}

// Returns scratch for [num_rows, width] floats in the rank's workspace, which grows if needed.
float* OrderedRows(const StepContext& step, size_t width, int64_t num_rows) {
  kernels::AlignedBuffer& buffer = step.workspace->ordered_x;
  const size_t bytes = width * static_cast<size_t>(num_rows) * sizeof(float);
  if (buffer.size_bytes() < bytes) buffer = kernels::AlignedBuffer(bytes);
  return buffer.as<float>();
}

// Returns x with its columns in the order of the stored matrix and zeros in padding columns.
const float* InStoredOrder(const StepContext& step, const std::vector<int32_t>& order, const LinearCall& call) {
  const size_t width = order.size();
  float* ordered = OrderedRows(step, width, call.num_rows);
  ForEachRow(step, call.num_rows, static_cast<int64_t>(width), [&](int64_t row) {
    const float* from = call.x + row * call.x_stride;
    float* to = ordered + static_cast<size_t>(row) * width;
    for (size_t k = 0; k < width; ++k) to[k] = order[k] < 0 ? 0.0f : from[order[k]];
  });
  return ordered;
}

}  // namespace

DenseMatrix::DenseMatrix(const kernels::OpenBlas* library, int64_t rows, int64_t columns,
                         const kernels::BufferSource& buffers)
    : blas(library),
      num_rows(rows),
      num_columns(columns),
      values(std::move(buffers({static_cast<size_t>(rows * columns) * sizeof(float)}).front())) {}

int64_t LinearMatrix::num_rows() const {
  if (const auto* stored = std::get_if<kernels::CheckpointQuantMatrix>(&matrix_)) return stored->num_rows();
  if (const auto* dense = std::get_if<DenseMatrix>(&matrix_)) return dense->num_rows;
  int64_t rows = 0;
  for (const Shard& range : ranges_) rows += range.count;
  return rows;
}

size_t LinearMatrix::size_bytes() const {
  if (const auto* stored = std::get_if<kernels::CheckpointQuantMatrix>(&matrix_)) return stored->size_bytes();
  if (const auto* dense = std::get_if<DenseMatrix>(&matrix_)) return dense->values.size_bytes();
  size_t num_panels = 0;
  for (const Shard& range : ranges_) num_panels += static_cast<size_t>(NumPanels(range));
  if (const auto* packed = std::get_if<kernels::PackedMatrix>(&matrix_)) {
    return packed->size_bytes() / static_cast<size_t>(std::max<int64_t>(1, packed->view().num_panels())) * num_panels;
  }
  const auto& quant = std::get<kernels::PackedQuantMatrix>(matrix_);
  return quant.size_bytes() / static_cast<size_t>(std::max<int64_t>(1, quant.view().num_panels())) * num_panels;
}

void LinearMatrix::Reserve(const StepContext& step, int64_t max_rows) const {
  if (!column_order_.empty()) {
    OrderedRows(step, column_order_.size(), max_rows);
    kernels::AlignedBuffer& unpacked = step.workspace->unpacked_rows;
    const size_t bytes = column_order_.size() * static_cast<size_t>(step.threads->num_threads()) * sizeof(float);
    if (unpacked.size_bytes() < bytes) unpacked = kernels::AlignedBuffer(bytes);
  }
  std::visit([&](const auto& matrix) { TilesFor(matrix, step, max_rows, step.workspace->packed_activations); },
             matrix_);
}

void LinearMatrix::Multiply(const StepContext& step, const LinearCall& call) const {
  LinearCall ordered = call;
  if (!column_order_.empty()) {
    ordered.x = InStoredOrder(step, column_order_, call);
    ordered.x_stride = static_cast<int64_t>(column_order_.size());
  }
  std::visit([&](const auto& matrix) { MultiplyBy(matrix, ranges_, step, ordered); }, matrix_);
}

std::optional<kernels::PackedActivationsView> LinearMatrix::PackedX(const StepContext& step, int64_t num_rows,
                                                                    kernels::PackedActivations& buffer) const {
  if (!column_order_.empty()) return std::nullopt;
  return std::visit([&](const auto& matrix) { return TilesFor(matrix, step, num_rows, buffer); }, matrix_);
}

void LinearMatrix::PackTile(const StepContext& step, const float* x, int64_t x_stride,
                            const kernels::PackedActivationsView& to) const {
  WithPacked(matrix_, [&](const auto& matrix) { PackFunctionFor(matrix, step)(x, x_stride, to, 0); });
}

void LinearMatrix::Pack(const StepContext& step, const float* x, int64_t x_stride,
                        const kernels::PackedActivationsView& to) const {
  WithPacked(matrix_, [&](const auto& matrix) { PackX(matrix, step, x, x_stride, to); });
}

void LinearMatrix::MultiplyPacked(const StepContext& step, const kernels::PackedActivationsView& x,
                                  const LinearCall& call) const {
  WithPacked(matrix_, [&](const auto& matrix) { MultiplyTiles(matrix, ranges_, step, x, call); });
}

std::optional<Shard> LinearMatrix::StoredRows(const Shard& rows) const {
  int64_t first_row = 0;
  for (const Shard& range : ranges_) {
    const int64_t offset = rows.begin - first_row;
    if (offset < range.count) {
      if (offset % kernels::kPanelRows != 0 || offset + rows.count > range.count) return std::nullopt;
      return Shard{range.begin + offset, rows.count};
    }
    first_row += range.count;
  }
  return std::nullopt;
}

void LinearMatrix::MultiplyRows(const StepContext& step, const kernels::PackedActivationsView& x,
                                const Shard& stored_rows, const float* bias, float* y, int64_t y_stride) const {
  const LinearCall call{bias, nullptr, 0, x.num_rows, y, y_stride};
  WithPacked(matrix_, [&](const auto& matrix) {
    MultiplyPanels(step, x, matrix.view().Rows(stored_rows.begin, stored_rows.count), call, 0, NumPanels(stored_rows));
  });
}

void LinearMatrix::UnpackRow(const StepContext& step, int64_t row, int thread, float* out) const {
  int64_t stored_row = row;
  if (!ranges_.empty()) {
    auto range = ranges_.begin();
    for (; stored_row >= range->count; ++range) stored_row -= range->count;
    stored_row += range->begin;
  }
  const auto unpack = [&](float* to) {
    std::visit([&](const auto& matrix) { UnpackRowOf(matrix, step, stored_row, to); }, matrix_);
  };
  if (column_order_.empty()) return unpack(out);
  const kernels::AlignedBuffer& rows = step.workspace->unpacked_rows;
  const size_t width = column_order_.size();
  VLLM_CHECK(rows.size_bytes() >= width * (static_cast<size_t>(thread) + 1) * sizeof(float));
  float* const stored = rows.as<float>() + width * static_cast<size_t>(thread);
  unpack(stored);
  for (size_t k = 0; k < column_order_.size(); ++k) {
    if (column_order_[k] >= 0) out[column_order_[k]] = stored[k];
  }
}

}  // namespace vllm
