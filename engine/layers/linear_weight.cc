#include "engine/layers/linear_weight.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/config/errors.h"
#include "engine/model_loader/escape.h"
#include "engine/model_loader/quantization_loader.h"

namespace vllm {

namespace {

// Below this many multiply-adds a job costs less than waking another thread for it.
constexpr int64_t kMinWorkPerTask = 1 << 18;
// A task covers whole groups of panels, so that the widest tile of any instruction set fits.
constexpr int64_t kPanelsPerGroup = 8;
// Of stored rows, so that what several rows of x unpack together stays together.
constexpr int64_t kStoredRowsPerGroup = 32;

struct Split {
  int64_t num_tasks = 0;
  int64_t groups_per_task = 1;
};

Split SplitWork(const RankContext& context, int64_t num_groups, int64_t work_per_group) {
  // Four tasks a thread even out threads of unequal speed.
  const int64_t wanted_tasks = context.threads->num_threads() * int64_t{4};
  int64_t groups = std::max<int64_t>(1, num_groups / wanted_tasks);
  groups = std::max(groups, (kMinWorkPerTask + work_per_group - 1) / std::max<int64_t>(1, work_per_group));
  return {(num_groups + groups - 1) / groups, groups};
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Row `i` of the part of a plain tensor as float32; the tensor is [out, in], or [in, out] when it is transposed.
void ReadRow(const TensorView& view, bool transposed, int64_t i, Shard columns, float* out) {
  const DType dtype = view.dtype();
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  if (!transposed) return ConvertToFloat(view.Row(i) + columns.begin * size, dtype, columns.count, out);
  for (int64_t k = 0; k < columns.count; ++k) ConvertToFloat(view.Row(columns.begin + k) + i * size, dtype, 1, out + k);
}

// What chooses experts or weighs them: few rows, on which whole layers depend.
bool IsGate(const std::string& name) {
  return name.ends_with(".gate") || name.ends_with(".router") || name.ends_with("_expert_gate");
}

const OpenBlas* LoadOpenBlas(const ModelConfig& model) {
  if (model.dtype != DType::kFloat32) {
    throw ConfigError("--linear-backend: openblas computes in float32 only (--dtype " +
                      std::string(ToString(model.dtype)) + ")");
  }
  std::string why;
  const OpenBlas* blas = OpenBlas::Get(why);
  if (blas == nullptr) throw ResourceError("cannot load OpenBLAS: " + why);
  return blas;
}

}  // namespace

struct LinearWeight::Call {
  const float* bias;
  const float* x;
  int64_t x_stride;
  int64_t num_rows;
  float* y;
  int64_t y_stride;
};

LinearWeight::LinearWeight(const RankContext& context, const WeightSource& weights, const ModelConfig& model,
                           const std::vector<OutputSlice>& slices, int64_t in_features, Shard columns, Use use)
    : num_columns_(columns.count) {
  if (context.linear_backend == LinearBackend::kOpenBlas && use == Use::kLinear) open_blas_ = LoadOpenBlas(model);
  const bool transposed = model.conv1d_weights && use == Use::kLinear;
  const ForEach for_each = [&context](int64_t count, const std::function<void(int64_t i)>& f) {
    context.threads->ParallelFor(count, [&f](int64_t i, int /*thread*/) { f(i); });
  };
  std::vector<TensorView> views;
  std::vector<OutputSlice> plain;
  const auto flush = [&] {
    if (!plain.empty()) AddPlain(context, model, views, plain, columns, transposed);
    views.clear();
    plain.clear();
  };
  for (const OutputSlice& slice : slices) {
    const MatrixPart part{slice.total_rows,  in_features,   slice.shard.begin,
                          slice.shard.count, columns.begin, columns.count};
    if (std::optional<StoredMatrix> stored = LoadQuantized(weights, model, slice.name, part, for_each)) {
      flush();
      AddStored(std::move(*stored));
      continue;
    }
    const TensorView view = transposed ? weights.Get(slice.name + ".weight", std::array{in_features, slice.total_rows})
                                       : weights.Get(slice.name + ".weight", std::array{slice.total_rows, in_features});
    if (BlockFormat(view.type)) {
      if (transposed || model.quantization.quantizes_at_load()) {
        throw ModelError("tensor " + Escape(view.name) + ": is quantized already (" +
                         std::string(InfoOf(view.type).name) + ")");
      }
      flush();
      AddStored(StoreBlocks(view, part));
    } else if (model.quantization.quantizes_at_load() && !IsGate(slice.name)) {
      const bool four = model.quantization.method == QuantizationMethod::kInt4 && use == Use::kLinear;
      view.dtype();
      AddStored(QuantizeRows(
          *context.kernels->quant, four ? 4 : 8, part,
          [&](int64_t i, float* out) { ReadRow(view, transposed, slice.shard.begin + i, columns, out); }, for_each));
    } else {
      views.push_back(view);
      plain.push_back(slice);
    }
  }
  flush();
}

void LinearWeight::AddPlain(const RankContext& context, const ModelConfig& model, const std::vector<TensorView>& views,
                            const std::vector<OutputSlice>& slices, Shard columns, bool transposed) {
  (void)context;
  Part part;
  part.first_row = num_rows_;
  for (const OutputSlice& slice : slices) part.num_rows += slice.shard.count;
  num_rows_ += part.num_rows;
  if (open_blas_ != nullptr) {
    part.dense = AlignedBuffer(static_cast<size_t>(part.num_rows * num_columns_) * sizeof(float));
  } else {
    part.packed = PackedMatrix(part.num_rows, num_columns_, model.dtype);
  }
  std::vector<float> values(static_cast<size_t>(num_columns_));
  int64_t row = 0;
  for (size_t s = 0; s < slices.size(); ++s) {
    const TensorView& view = views[s];
    const DType dtype = view.dtype();
    for (int64_t i = slices[s].shard.begin; i < slices[s].shard.begin + slices[s].shard.count; ++i, ++row) {
      if (open_blas_ != nullptr) {
        ReadRow(view, transposed, i, columns, part.dense.as<float>() + row * num_columns_);
      } else if (transposed) {
        ReadRow(view, transposed, i, columns, values.data());
        part.packed.PackRows(reinterpret_cast<const std::byte*>(values.data()), DType::kFloat32, 0, row, 1);
      } else {
        part.packed.PackRows(view.Row(i) + columns.begin * static_cast<int64_t>(SizeOf(dtype)), dtype, 0, row, 1);
      }
    }
  }
  parts_.push_back(std::move(part));
}

void LinearWeight::AddStored(StoredMatrix matrix) {
  if (open_blas_ != nullptr)
    throw ConfigError("--linear-backend: openblas computes in float32 only (quantized weights)");
  Part part;
  part.first_row = num_rows_;
  part.num_rows = matrix.matrix.num_rows();
  part.stored = std::move(matrix);
  part.is_stored = true;
  num_rows_ += part.num_rows;
  parts_.push_back(std::move(part));
}

size_t LinearWeight::size_bytes() const {
  size_t bytes = 0;
  for (const Part& part : parts_) {
    bytes += part.packed.size_bytes() + part.dense.size_bytes() + part.stored.matrix.size_bytes();
  }
  return bytes;
}

const float* LinearWeight::InStoredOrder(const RankContext& context, const Part& part, const Call& call) const {
  const std::vector<int32_t>& order = part.stored.column_order;
  const size_t width = order.size();
  std::vector<float>& ordered = *context.ordered_x;
  if (ordered.size() < width * static_cast<size_t>(call.num_rows)) {
    ordered.resize(width * static_cast<size_t>(call.num_rows));
  }
  for (int64_t row = 0; row < call.num_rows; ++row) {
    const float* from = call.x + row * call.x_stride;
    float* to = ordered.data() + static_cast<size_t>(row) * width;
    for (size_t k = 0; k < width; ++k) to[k] = order[k] < 0 ? 0.0f : from[order[k]];
  }
  return ordered.data();
}

void LinearWeight::Multiply(const RankContext& context, const float* bias, const float* x, int64_t x_stride,
                            int64_t num_rows, float* y, int64_t y_stride) const {
  for (const Part& part : parts_) {
    Call call{bias == nullptr ? nullptr : bias + part.first_row, x, x_stride, num_rows, y + part.first_row, y_stride};
    if (open_blas_ != nullptr) {
      MultiplyDense(context, part, call);
    } else if (!part.is_stored) {
      const PackedMatrixView& w = part.packed.view();
      const int64_t num_panels = w.num_panels();
      const Split split = SplitWork(context, CeilDiv(num_panels, kPanelsPerGroup),
                                    num_rows * w.num_columns * kPanelRows * kPanelsPerGroup);
      const int64_t panels = split.groups_per_task * kPanelsPerGroup;
      context.threads->ParallelFor(split.num_tasks, [&](int64_t task, int /*thread*/) {
        const int64_t begin = task * panels;
        context.kernels->linear(call.x, call.x_stride, num_rows, w, call.bias, call.y, y_stride, begin,
                                std::min(num_panels, begin + panels));
      });
    } else {
      const QuantMatrixView& w = part.stored.matrix.view();
      if (!part.stored.column_order.empty()) {
        call.x = InStoredOrder(context, part, call);
        call.x_stride = w.num_columns;
      }
      const Split split =
          SplitWork(context, CeilDiv(w.num_rows, kStoredRowsPerGroup), num_rows * w.num_columns * kStoredRowsPerGroup);
      const int64_t rows = split.groups_per_task * kStoredRowsPerGroup;
      context.threads->ParallelFor(split.num_tasks, [&](int64_t task, int /*thread*/) {
        const int64_t begin = task * rows;
        context.kernels->quant->linear(call.x, call.x_stride, num_rows, w, call.bias, call.y, y_stride, begin,
                                       std::min(w.num_rows, begin + rows));
      });
    }
  }
}

void LinearWeight::MultiplyDense(const RankContext& context, const Part& part, const Call& call) const {
  const int64_t num_threads = context.threads->num_threads();
  const int64_t rows_per_task = std::max<int64_t>(64, CeilDiv(part.num_rows, num_threads));
  context.threads->ParallelFor(CeilDiv(part.num_rows, rows_per_task), [&](int64_t task, int /*thread*/) {
    const int64_t begin = task * rows_per_task;
    const int64_t count = std::min(rows_per_task, part.num_rows - begin);
    open_blas_->Multiply(call.x, call.x_stride, call.num_rows, part.dense.as<float>() + begin * num_columns_, count,
                         num_columns_, call.y + begin, call.y_stride);
    if (call.bias == nullptr) return;
    for (int64_t row = 0; row < call.num_rows; ++row) {
      context.kernels->add(call.y + row * call.y_stride + begin, call.bias + begin, count);
    }
  });
}

void LinearWeight::UnpackRow(const RankContext& context, int64_t row, float* out) const {
  for (const Part& part : parts_) {
    const int64_t local = row - part.first_row;
    if (local >= part.num_rows) continue;
    if (!part.is_stored) return part.packed.UnpackRow(local, out);
    const QuantMatrixView& w = part.stored.matrix.view();
    const std::vector<int32_t>& order = part.stored.column_order;
    std::array<float, 256> block;
    for (int64_t begin = 0; begin < w.num_columns; begin += 256) {
      const int64_t end = std::min(w.num_columns, begin + 256);
      if (order.empty()) {
        context.kernels->quant->dequantize(w, local, begin, end, out + begin);
        continue;
      }
      context.kernels->quant->dequantize(w, local, begin, end, block.data());
      for (int64_t k = begin; k < end; ++k) {
        const int32_t column = order[static_cast<size_t>(k)];
        if (column >= 0) out[column] = block[static_cast<size_t>(k - begin)];
      }
    }
    return;
  }
}

}  // namespace vllm
