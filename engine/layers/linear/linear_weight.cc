#include "engine/layers/linear/linear_weight.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/layers/linear/calibration_run.h"
#include "engine/model_loader/quantization/float4.h"
#include "engine/model_loader/quantization/groups.h"
#include "engine/model_loader/quantization/loader.h"
#include "engine/model_loader/quantization/packed_codes.h"
#include "kernels/matrix/quant_codes.h"

namespace vllm {

namespace {

// Reads row `i` of a floating-point tensor as float32. The tensor is [out, in], or [in, out] if `transposed`.
void ReadRow(const TensorView& view, bool transposed, int64_t i, int64_t in_features, float* out) {
  const kernels::DType dtype = view.dtype();
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  if (!transposed) return kernels::ConvertToFloat(view.Row(i), dtype, in_features, out);
  for (int64_t k = 0; k < in_features; ++k) kernels::ConvertToFloat(view.Row(k) + i * size, dtype, 1, out + k);
}

// Returns the name of a slice, from which the names of its cache entries are built. With the same checkpoint and
// packing settings, entries with the same name have the same bytes.
std::string PartName(const OutputSlice& slice) {
  return slice.name + "[" + std::to_string(slice.shard.begin) + "+" + std::to_string(slice.shard.count) + "]";
}

// Returns true for layers that choose or weight experts. They are not quantized at load: they have few rows, and the
// output of the whole block depends on them.
bool IsGate(const std::string& name) {
  return name.ends_with(".gate") || name.ends_with(".router") || name.ends_with("_expert_gate");
}

// Returns true if codes of a quantized checkpoint may be packed for the integer kernels, which round activations to 8
// bits. With --dtype float32, these codes keep the checkpoint's format, and activations are not rounded.
bool RoundsActivations(const ModelConfig& model) { return model.dtype != kernels::DType::kFloat32; }

// Returns a function that runs on the rank's threads. It borrows `step`.
ForEach ForEachOf(const StepContext& step) {
  return [&step](int64_t count, const std::function<void(int64_t i)>& f) {
    step.threads->ParallelFor(count, [&f](int64_t i, int /*thread*/) { f(i); });
  };
}

const kernels::OpenBlas* LoadOpenBlas(const ModelConfig& model) {
  if (model.dtype != kernels::DType::kFloat32) {
    throw ConfigError("--linear-backend: openblas computes in float32 only (--dtype " +
                      std::string(ToString(model.dtype)) + ")");
  }
  std::string why;
  const kernels::OpenBlas* blas = kernels::OpenBlas::Get(why);
  if (blas == nullptr) throw ResourceError("cannot load OpenBLAS: " + why);
  return blas;
}

}  // namespace

// The stacked rows of several floating-point tensors.
struct LinearWeight::FloatRows {
  std::vector<TensorView> views;
  std::vector<OutputSlice> slices;
  int64_t in_features = 0;
  bool transposed = false;
  int64_t num_rows = 0;

  void Push(const TensorView& view, const OutputSlice& slice) {
    views.push_back(view);
    slices.push_back(slice);
    num_rows += slice.shard.count;
  }
  void Clear() {
    views.clear();
    slices.clear();
    num_rows = 0;
  }
  // Calls f(row, view, i) for each stacked row in [begin, end). The row is row i of `view`.
  template <typename F>
  void ForEach(int64_t begin, int64_t end, F&& f) const {
    int64_t first = 0;
    for (size_t s = 0; s < slices.size(); ++s) {
      const Shard& shard = slices[s].shard;
      const int64_t slice_end = std::min(end, first + shard.count);
      for (int64_t row = std::max(begin, first); row < slice_end; ++row) f(row, views[s], shard.begin + row - first);
      first += shard.count;
    }
  }
  std::string Name() const {
    std::string name;
    for (const OutputSlice& slice : slices) name += PartName(slice);
    return name;
  }
  // Sets all rows of the matrix to the codes of `weights`. Returns false if they do not have all rows.
  // `for_each_panel(f)` calls f(panel) for all panels of the matrix.
  template <typename ForEachPanel>
  bool Fill(const CalibratedWeights& weights, const ForEachPanel& for_each_panel,
            kernels::PackedQuantMatrix& matrix) const {
    std::vector<CalibratedWeights::Row> found;
    for (const OutputSlice& slice : slices) {
      for (int64_t i = 0; i < slice.shard.count; ++i) {
        found.push_back(weights.Find(slice.name, slice.shard.begin + i));
        if (found.back().matrix == nullptr) return false;
      }
    }
    for_each_panel([&](int64_t panel) {
      const int64_t end = std::min(num_rows, (panel + 1) * kernels::kPanelRows);
      for (int64_t row = panel * kernels::kPanelRows; row < end; ++row) {
        const auto& [from, from_row] = found[static_cast<size_t>(row)];
        std::vector<uint8_t> codes(static_cast<size_t>(from->num_columns()));
        std::vector<float> scales(static_cast<size_t>(from->num_scales()));
        from->GetRow(from_row, codes.data(), scales.data());
        matrix.SetRow(row, codes.data(), scales.data(), nullptr);
      }
    });
    return true;
  }
  // Reads row i of `view` as float32.
  void Read(const TensorView& view, int64_t i, float* out) const { ReadRow(view, transposed, i, in_features, out); }
};

LinearWeight::LinearWeight(const LoadContext& load, const ModelConfig& model, const std::vector<OutputSlice>& slices,
                           int64_t in_features, Use use)
    : num_columns_(in_features) {
  if (load.config.linear_backend == LinearBackend::kOpenBlas && use == Use::kLinear) open_blas_ = LoadOpenBlas(model);
  const ForEach for_each = ForEachOf(load.step);
  FloatRows float_rows;
  float_rows.in_features = in_features;
  float_rows.transposed = model.conv1d_weights && use == Use::kLinear;
  for (const OutputSlice& slice : slices) {
    const MatrixRows rows{slice.total_rows, in_features, slice.shard.begin, slice.shard.count};
    const std::string name = PartName(slice);
    const kernels::BufferSource buffers =
        RoundsActivations(model) ? load.memory.TemporaryBuffers() : load.memory.Buffers(name);
    if (std::optional<CheckpointMatrix> stored =
            LoadQuantized(load.weights, model, slice.name, rows, buffers, for_each)) {
      RejectOpenBlas();
      AddFloatRows(load, model, float_rows, use);
      float_rows.Clear();
      AddStored(load, model, std::move(*stored), name, for_each);
      continue;
    }
    const TensorView view = float_rows.transposed
                                ? load.weights.Get(slice.name + ".weight", std::array{in_features, slice.total_rows})
                                : load.weights.Get(slice.name + ".weight", std::array{slice.total_rows, in_features});
    if (!kernels::BlockFormat(view.type)) {
      view.CheckFloatingPoint();
      float_rows.Push(view, slice);
      continue;
    }
    if (model.quantization.quantizes_at_load()) {
      throw ConfigError("--quantization: tensor " + Escape(view.name) + " is already quantized (" +
                        std::string(InfoOf(view.type).name) + ")");
    }
    if (float_rows.transposed) {
      throw ModelError("cannot load tensor " + Escape(view.name) + ": quantized weights cannot be transposed (" +
                       std::string(InfoOf(view.type).name) + ")");
    }
    RejectOpenBlas();
    AddFloatRows(load, model, float_rows, use);
    float_rows.Clear();
    if (view.scale != 1.0f) {
      AddStored(load, model, StoreGroups(OpenScaledNvfp4(view, rows), rows, buffers, for_each), name, for_each);
      continue;
    }
    AddBlocks(load, model, view, rows, name, for_each);
  }
  const bool is_float = slices.size() == float_rows.slices.size();
  AddFloatRows(load, model, float_rows, use);
  if (load.calibration_run == nullptr || use != Use::kLinear || IsGate(slices.front().name) || !is_float) return;
  calibration_run_ = load.calibration_run;
  std::vector<CalibratedSlice> calibrated;
  for (const OutputSlice& slice : slices) calibrated.push_back({slice.name, slice.shard.begin, slice.shard.count});
  calibration_layer_ = calibration_run_->AddLayer(std::move(calibrated), num_columns_);
}

void LinearWeight::RejectOpenBlas() const {
  if (open_blas_ == nullptr) return;
  throw ConfigError("--linear-backend: openblas computes in float32 only (quantized weights)");
}

void LinearWeight::Add(LinearMatrix matrix) {
  const int64_t first_row = num_rows_;
  num_rows_ += matrix.num_rows();
  parts_.push_back({first_row, std::move(matrix)});
}

bool LinearWeight::AddCodes(const LoadContext& load, const ModelConfig& model,
                            const kernels::CheckpointQuantMatrixView& stored, const std::vector<int32_t>& column_order,
                            const std::string& name, const ForEach& for_each) {
  if (!RoundsActivations(model)) return false;
  const std::optional<kernels::PackedQuantForm> form = kernels::PackedFormOf(stored);
  const std::string packed_name = name + "#codes";
  if (!form) return false;
  // Checking all scales takes time, so skip it for cached codes, which were checked before they were packed.
  const std::vector<size_t> sizes = kernels::PackedQuantMatrix::BufferSizes(*form, stored.num_rows, stored.num_columns);
  if (!load.memory.Contains(packed_name, sizes) && !ScalesFit(stored, *form, for_each)) return false;
  kernels::PackedQuantMatrix packed(*form, stored.num_rows, stored.num_columns, load.memory.Buffers(packed_name));
  if (!packed.is_filled()) PackCodes(stored, *form, for_each, packed);
  Add(LinearMatrix(std::move(packed), column_order));
  return true;
}

void LinearWeight::AddStored(const LoadContext& load, const ModelConfig& model, CheckpointMatrix stored,
                             const std::string& name, const ForEach& for_each) {
  if (AddCodes(load, model, stored.matrix.view(), stored.column_order, name, for_each)) return;
  Add(LinearMatrix(std::move(stored)));
}

void LinearWeight::AddBlocks(const LoadContext& load, const ModelConfig& model, const TensorView& view,
                             const MatrixRows& rows, const std::string& name, const ForEach& for_each) {
  if (RoundsActivations(model)) {
    if (const std::optional<kernels::CheckpointQuantMatrixView> blocks = ViewBlocks(view, rows)) {
      if (AddCodes(load, model, *blocks, {}, name, for_each)) return;
    } else {
      CheckpointMatrix stored = StoreBlocks(view, rows, load.memory.TemporaryBuffers(), for_each);
      return AddStored(load, model, std::move(stored), name, for_each);
    }
  }
  Add(LinearMatrix(StoreBlocks(view, rows, load.memory.Buffers(name), for_each)));
}

void LinearWeight::AddFloatRows(const LoadContext& load, const ModelConfig& model, const FloatRows& rows, Use use) {
  if (rows.num_rows == 0) return;
  const kernels::BufferSource buffers = load.memory.Buffers(rows.Name());
  // Runs on the rank's threads. Each panel is packed by one thread, so threads seldom write to the same cache line.
  const auto for_each_panel = [&](const auto& f) {
    load.step.threads->ParallelFor((rows.num_rows + kernels::kPanelRows - 1) / kernels::kPanelRows,
                                   [&](int64_t panel, int /*thread*/) { f(panel); });
  };
  const auto for_each_row = [&rows](int64_t panel, const auto& f) {
    rows.ForEach(panel * kernels::kPanelRows, std::min(rows.num_rows, (panel + 1) * kernels::kPanelRows), f);
  };
  if (model.quantization.quantizes_at_load() && !IsGate(rows.slices.front().name)) {
    RejectOpenBlas();
    const bool four = model.quantization.method == QuantizationMethod::kInt4 && use == Use::kLinear;
    kernels::PackedQuantMatrix matrix(four ? kernels::kInt4Form : kernels::kInt8Form, rows.num_rows, num_columns_,
                                      buffers);
    const bool may_be_calibrated = four && load.calibration != nullptr;
    if (!matrix.is_filled() && !(may_be_calibrated && rows.Fill(load.calibration->Weights(), for_each_panel, matrix))) {
      for_each_panel([&](int64_t panel) {
        std::vector<float> values(static_cast<size_t>(num_columns_));
        for_each_row(panel, [&](int64_t row, const TensorView& view, int64_t i) {
          rows.Read(view, i, values.data());
          matrix.QuantizeRow(*load.step.kernels->quant, row, values.data());
        });
      });
    }
    return Add(LinearMatrix(std::move(matrix)));
  }
  if (open_blas_ != nullptr) {
    DenseMatrix matrix(open_blas_, rows.num_rows, num_columns_, buffers);
    if (!matrix.values.is_filled()) {
      for_each_panel([&](int64_t panel) {
        for_each_row(panel, [&](int64_t row, const TensorView& view, int64_t i) {
          rows.Read(view, i, matrix.values.as<float>() + row * num_columns_);
        });
      });
    }
    return Add(LinearMatrix(std::move(matrix)));
  }
  kernels::PackedMatrix matrix(rows.num_rows, num_columns_, model.dtype, buffers);
  if (!matrix.is_filled()) {
    for_each_panel([&](int64_t panel) {
      std::vector<float> values(rows.transposed ? static_cast<size_t>(kernels::kPanelRows * num_columns_) : 0);
      std::array<kernels::SourceRow, kernels::kPanelRows> sources;
      size_t count = 0;
      for_each_row(panel, [&](int64_t /*row*/, const TensorView& view, int64_t i) {
        const kernels::DType dtype = view.dtype();
        sources[count] = {view.Row(i), dtype};
        if (rows.transposed) {
          float* row_values = values.data() + static_cast<int64_t>(count) * num_columns_;
          rows.Read(view, i, row_values);
          sources[count] = {reinterpret_cast<const std::byte*>(row_values), kernels::DType::kFloat32};
        }
        ++count;
      });
      matrix.PackPanel(panel, std::span(sources).first(count));
    });
  }
  Add(LinearMatrix(std::move(matrix)));
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
