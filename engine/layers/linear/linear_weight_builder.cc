#include "engine/layers/linear/linear_weight_builder.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/quantization/float4.h"
#include "engine/model_loader/quantization/groups.h"
#include "engine/model_loader/quantization/loader.h"
#include "engine/model_loader/quantization/packed_codes.h"
#include "kernels/matrix/quant_codes.h"

namespace vllm {

namespace {

using kernels::kPanelRows;

// Returns the name of rows of a slice, from which the names of cache entries are built. With the same checkpoint and
// packing settings, entries with the same name have the same bytes.
std::string RowsName(const OutputSlice& slice, const Shard& rows) {
  return slice.name + "[" + std::to_string(slice.shard.begin + rows.begin) + "+" + std::to_string(rows.count) + "]";
}

// Returns true for layers that choose or weight experts. They are not quantized at load: they have few rows, and the
// output of the whole block depends on them.
bool IsGate(const std::string& name) {
  return name.ends_with(".gate") || name.ends_with(".router") || name.ends_with("_expert_gate");
}

// Returns true if codes of a quantized checkpoint may be packed for the integer kernels, which round activations to 8
// bits. With --dtype float32, these codes keep the checkpoint's format, and activations are not rounded.
bool RoundsActivations(const ModelConfig& model) { return model.dtype != kernels::DType::kFloat32; }

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

bool BeginsAtPanels(const Shard& range, int64_t num_rows) {
  const int64_t end = range.begin + range.count;
  return range.begin % kPanelRows == 0 && (end % kPanelRows == 0 || end == num_rows);
}

int64_t NumRows(const std::vector<Shard>& ranges) {
  int64_t count = 0;
  for (const Shard& range : ranges) count += range.count;
  return count;
}

}  // namespace

struct LinearWeightBuilder::FloatRows {
  struct Slice {
    TensorView view;
    OutputSlice slice;
    int64_t first_row = 0;  // in the stacked rows of the slices
  };
  int64_t first_row = 0;  // in the stacked rows of all ranks
  int64_t num_rows = 0;
  std::vector<Slice> slices;
  int64_t in_features = 0;
  bool is_transposed = false;  // tensors are [in, out]

  void Push(const TensorView& view, const OutputSlice& slice) {
    slices.push_back({view, slice, num_rows});
    num_rows += slice.shard.count;
  }
  const Slice& SliceOf(int64_t row) const {
    return *std::prev(std::ranges::upper_bound(slices, row, {}, &Slice::first_row));
  }
  // Returns the row of the checkpoint's matrix.
  static int64_t RowIn(const Slice& slice, int64_t row) { return slice.slice.shard.begin + row - slice.first_row; }
  // Reads a row as float32.
  void Read(int64_t row, float* out) const {
    const Slice& from = SliceOf(row);
    const kernels::DType dtype = from.view.dtype();
    const int64_t i = RowIn(from, row);
    if (!is_transposed) return kernels::ConvertToFloat(from.view.Row(i), dtype, in_features, out);
    const auto size = static_cast<int64_t>(SizeOf(dtype));
    for (int64_t k = 0; k < in_features; ++k) {
      kernels::ConvertToFloat(from.view.Row(k) + i * size, dtype, 1, out + k);
    }
  }
  std::string Name(const std::vector<Shard>& ranges) const {
    std::string name;
    for (const Shard& range : ranges) {
      for (int64_t row = range.begin; row < range.begin + range.count;) {
        const Slice& from = SliceOf(row);
        const int64_t first = row - from.first_row;
        const int64_t count = std::min(from.slice.shard.count - first, range.begin + range.count - row);
        name += RowsName(from.slice, {first, count});
        row += count;
      }
    }
    return name;
  }
};

struct LinearWeightBuilder::StoredRows {
  Shard range;  // in the slice
  MatrixRows rows;
  std::optional<CheckpointMatrix> matrix;
  // Instead of `matrix`: blocks of a GGUF file, and their tensor.
  std::optional<kernels::CheckpointQuantMatrixView> mapped;
  TensorView tensor;

  kernels::CheckpointQuantMatrixView view() const { return mapped ? *mapped : matrix->matrix.view(); }
  std::vector<int32_t> column_order() const { return mapped ? std::vector<int32_t>() : matrix->column_order; }
};

LinearWeightBuilder::LinearWeightBuilder(const LoadContext& load, const ModelConfig& model, const LinearRows& rows,
                                         int64_t in_features, bool is_vocabulary)
    : load_(load),
      model_(model),
      rows_(rows),
      in_features_(in_features),
      is_vocabulary_(is_vocabulary),
      is_transposed_(model.conv1d_weights && !is_vocabulary),
      for_each_([&step = load.step](int64_t count, const std::function<void(int64_t i)>& f) {
        step.threads->ParallelFor(count, [&f](int64_t i, int /*thread*/) { f(i); });
      }) {
  if (load.config.linear_backend == LinearBackend::kOpenBlas && !is_vocabulary) open_blas_ = LoadOpenBlas(model);
  for (int rank = 0; rank < load.step.world_size(); ++rank) {
    ranges_.push_back(StackedRanges(rows.all, rows.Of(rank)));
  }
}

LinearWeightBuilder::Part LinearWeightBuilder::MakePart(int64_t first_row, int64_t num_rows) const {
  Part part{.num_rows = num_rows, .own = {}, .is_shared = true};
  for (int rank = 0; rank < load_.step.world_size(); ++rank) {
    for (const Shard& range : ranges_[static_cast<size_t>(rank)]) {
      const int64_t begin = std::max(range.begin, first_row) - first_row;
      const int64_t end = std::min(range.begin + range.count, first_row + num_rows) - first_row;
      if (begin >= end) continue;
      part.is_shared = part.is_shared && BeginsAtPanels({begin, end - begin}, num_rows);
      if (rank == load_.step.rank()) part.own.push_back({begin, end - begin});
    }
  }
  return part;
}

std::vector<LinearMatrix> LinearWeightBuilder::Build() {
  int64_t first_row = 0;
  FloatRows floats{.first_row = 0, .slices = {}, .in_features = in_features_, .is_transposed = is_transposed_};
  const auto flush = [&] {
    AddFloats(floats);
    floats.slices.clear();
    floats.num_rows = 0;
  };
  size_t num_floats = 0;
  for (const OutputSlice& slice : rows_.all) {
    const Part part = MakePart(first_row, slice.shard.count);
    std::vector<StoredRows> stored = LoadStored(slice, part);
    if (stored.empty()) {
      const std::array<int64_t, 2> shape = {is_transposed_ ? in_features_ : slice.total_rows,
                                            is_transposed_ ? slice.total_rows : in_features_};
      const TensorView view = load_.weights.Get(slice.name + ".weight", shape);
      view.CheckFloatingPoint();
      if (floats.slices.empty()) floats.first_row = first_row;
      floats.Push(view, slice);
      ++num_floats;
    } else {
      RejectOpenBlas();
      flush();
      AddStored(slice, part, std::move(stored));
    }
    first_row += slice.shard.count;
  }
  flush();
  may_be_quantized_ = num_floats == rows_.all.size() && !IsGate(rows_.all.front().name);
  return std::move(matrices_);
}

void LinearWeightBuilder::RejectOpenBlas() const {
  if (open_blas_ == nullptr) return;
  throw ConfigError("--linear-backend: openblas computes in float32 only (quantized weights)");
}

std::vector<LinearWeightBuilder::StoredRows> LinearWeightBuilder::LoadStored(const OutputSlice& slice,
                                                                             const Part& part) const {
  std::vector<StoredRows> all;
  // Without a row on this rank, the first row shows the format.
  const bool is_probe = part.own.empty();
  for (const Shard& range : is_probe ? std::vector<Shard>{{0, 1}} : part.own) {
    const MatrixRows rows{slice.total_rows, in_features_, slice.shard.begin + range.begin, range.count};
    StoredRows stored{.range = range, .rows = rows, .matrix = {}, .mapped = {}, .tensor = {}};
    const kernels::BufferSource buffers = is_probe || RoundsActivations(model_)
                                              ? load_.memory.TemporaryBuffers()
                                              : load_.memory.Buffers(RowsName(slice, range));
    stored.matrix = LoadQuantized(load_.weights, model_, slice.name, rows, buffers, for_each_);
    if (!stored.matrix) {
      const std::array<int64_t, 2> shape = {is_transposed_ ? in_features_ : slice.total_rows,
                                            is_transposed_ ? slice.total_rows : in_features_};
      const TensorView view = load_.weights.Get(slice.name + ".weight", shape);
      if (!kernels::BlockFormat(view.type)) return {};
      if (model_.quantization.quantizes_at_load()) {
        throw ConfigError("--quantization: tensor " + Escape(view.name) + " is already quantized (" +
                          std::string(InfoOf(view.type).name) + ")");
      }
      if (is_transposed_) {
        throw ModelError("cannot load tensor " + Escape(view.name) + ": quantized weights cannot be transposed (" +
                         std::string(InfoOf(view.type).name) + ")");
      }
      if (view.scale != 1.0f) {
        stored.matrix = StoreGroups(OpenScaledNvfp4(view, rows), rows, buffers, for_each_);
      } else {
        if (RoundsActivations(model_)) stored.mapped = ViewBlocks(view, rows);
        stored.tensor = view;
        if (!stored.mapped) stored.matrix = StoreBlocks(view, rows, buffers, for_each_);
      }
    }
    all.push_back(std::move(stored));
  }
  return all;
}

void LinearWeightBuilder::AddStored(const OutputSlice& slice, const Part& part, std::vector<StoredRows> stored) {
  if (PackStored(slice, part, stored) || part.own.empty()) return;
  for (StoredRows& rows : stored) {
    if (rows.mapped) {
      const kernels::BufferSource buffers = load_.memory.Buffers(RowsName(slice, rows.range));
      rows.matrix = StoreBlocks(rows.tensor, rows.rows, buffers, for_each_);
    }
    matrices_.emplace_back(std::move(*rows.matrix));
  }
}

bool LinearWeightBuilder::PackStored(const OutputSlice& slice, const Part& part,
                                     const std::vector<StoredRows>& stored) {
  if (!RoundsActivations(model_)) return false;
  const kernels::CheckpointQuantMatrixView first = stored.front().view();
  const std::optional<kernels::PackedQuantForm> form = kernels::PackedFormOf(first);
  if (!form) return false;
  const auto claim_all = [](int64_t /*panel*/) { return true; };
  if (!part.is_shared) {
    if (!ScalesFit(stored, *form)) return false;
    for (const StoredRows& rows : stored) {
      if (part.own.empty()) break;
      kernels::PackedQuantMatrix packed(*form, rows.range.count, first.num_columns,
                                        load_.memory.Buffers(RowsName(slice, rows.range) + "#codes"));
      if (!packed.is_filled()) PackCodes(rows.view(), *form, for_each_, 0, claim_all, packed);
      matrices_.emplace_back(std::move(packed), std::vector<Shard>{{0, rows.range.count}}, rows.column_order());
    }
    return true;
  }
  const std::string name = RowsName(slice, {0, part.num_rows}) + "#codes";
  // Checking all scales takes time, so skip it for cached codes, which were checked before they were packed.
  const std::vector<size_t> sizes = kernels::PackedQuantMatrix::BufferSizes(*form, part.num_rows, first.num_columns);
  if (!load_.memory.ContainsShared(name, sizes) && !ScalesFit(stored, *form)) return false;
  const SharedMatrixMemory memory = load_.memory.SharedBuffers(name);
  kernels::PackedQuantMatrix packed(*form, part.num_rows, first.num_columns, memory.buffers);
  if (part.own.empty()) return true;
  const auto claim = [&memory](int64_t panel) { return memory.claims == nullptr || memory.claims->Claim(panel); };
  for (const StoredRows& rows : stored) {
    if (!packed.is_filled()) PackCodes(rows.view(), *form, for_each_, rows.range.begin, claim, packed);
  }
  matrices_.emplace_back(std::move(packed), part.own, stored.front().column_order());
  return true;
}

bool LinearWeightBuilder::ScalesFit(const std::vector<StoredRows>& stored, const kernels::PackedQuantForm& form) const {
  ScaleRange range;
  for (const StoredRows& rows : stored) range.Add(RangeOfScales(rows.view(), form, for_each_));
  // If every rank has all rows, there is nothing to ask. The layers of the pooler are only on rank 0.
  if (rows_.ranks.empty()) return range.Fits();
  const std::array<float, 2> own = {range.is_exact ? 1.0f : 0.0f, range.largest};
  ScaleRange all;
  for (const PeerBuffers& peer : load_.step.communicator->Exchange({.in = own.data()})) {
    all.Add({peer.in[0] != 0.0f, peer.in[1]});
  }
  load_.step.communicator->Barrier();
  return all.Fits();
}

LinearWeightBuilder::FloatMatrix LinearWeightBuilder::FloatMatrixOf(const FloatRows& floats, const Part& part) const {
  FloatMatrix matrix;
  if (part.is_shared) {
    const SharedMatrixMemory memory = load_.memory.SharedBuffers(floats.Name({{0, part.num_rows}}));
    matrix = {part.num_rows, {{0, part.num_rows}}, part.own, memory.buffers, memory.claims};
  } else {
    const int64_t num_rows = NumRows(part.own);
    matrix = {num_rows, part.own, {{0, num_rows}}, load_.memory.Buffers(floats.Name(part.own)), nullptr};
  }
  return matrix;
}

template <typename F>
void LinearWeightBuilder::Fill(const FloatMatrix& matrix, const F& f) const {
  std::vector<int64_t> panels;
  for (const Shard& range : matrix.ranges) {
    const int64_t end = (range.begin + range.count + kPanelRows - 1) / kPanelRows;
    for (int64_t panel = range.begin / kPanelRows; panel < end; ++panel) {
      if (matrix.claims == nullptr || matrix.claims->Claim(panel)) panels.push_back(panel);
    }
  }
  std::vector<int64_t> sources;  // the stacked row of each row of the matrix
  for (const Shard& range : matrix.sources) {
    for (int64_t i = 0; i < range.count; ++i) sources.push_back(range.begin + i);
  }
  // Each panel is packed by one thread, so threads seldom write to the same cache line.
  load_.step.threads->ParallelFor(std::ssize(panels), [&](int64_t i, int /*thread*/) {
    const int64_t panel = panels[static_cast<size_t>(i)];
    const int64_t begin = panel * kPanelRows, end = std::min(matrix.num_rows, begin + kPanelRows);
    f(panel, std::span<const int64_t>(sources).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  });
}

void LinearWeightBuilder::AddFloats(const FloatRows& floats) {
  if (floats.slices.empty()) return;
  Part part = MakePart(floats.first_row, floats.num_rows);
  const bool is_quantized = model_.quantization.quantizes_at_load() && !IsGate(floats.slices.front().slice.name);
  if (is_quantized) RejectOpenBlas();
  if (part.own.empty()) return;
  if (open_blas_ != nullptr) part.is_shared = false;
  const FloatMatrix matrix = FloatMatrixOf(floats, part);
  if (is_quantized) return QuantizeFloats(floats, matrix);
  if (open_blas_ != nullptr) return CopyFloats(floats, matrix);
  PackFloats(floats, matrix);
}

void LinearWeightBuilder::QuantizeFloats(const FloatRows& floats, const FloatMatrix& to) {
  const bool four = model_.quantization.method == QuantizationMethod::kInt4 && !is_vocabulary_;
  kernels::PackedQuantMatrix matrix(four ? kernels::kInt4Form : kernels::kInt8Form, to.num_rows, in_features_,
                                    to.buffers);
  const bool may_be_calibrated = four && load_.calibration != nullptr;
  if (!matrix.is_filled() && !(may_be_calibrated && CopyCalibrated(floats, to, matrix))) {
    Fill(to, [&](int64_t panel, std::span<const int64_t> sources) {
      std::vector<float> values(static_cast<size_t>(in_features_));
      for (size_t i = 0; i < sources.size(); ++i) {
        floats.Read(sources[i], values.data());
        matrix.QuantizeRow(*load_.step.kernels->quant, panel * kPanelRows + static_cast<int64_t>(i), values.data());
      }
    });
  }
  matrices_.emplace_back(std::move(matrix), to.ranges);
}

bool LinearWeightBuilder::CopyCalibrated(const FloatRows& floats, const FloatMatrix& to,
                                         kernels::PackedQuantMatrix& matrix) const {
  const CalibratedWeights& weights = load_.calibration->Weights();
  const auto find = [&](int64_t row) {
    const FloatRows::Slice& from = floats.SliceOf(row);
    return weights.Find(from.slice.name, FloatRows::RowIn(from, row));
  };
  for (int64_t row = 0; row < floats.num_rows; ++row) {
    if (find(row).matrix == nullptr) return false;
  }
  Fill(to, [&](int64_t panel, std::span<const int64_t> sources) {
    for (size_t i = 0; i < sources.size(); ++i) {
      const auto& [from, from_row] = find(sources[i]);
      std::vector<uint8_t> codes(static_cast<size_t>(from->num_columns()));
      std::vector<float> scales(static_cast<size_t>(from->num_scales()));
      from->GetRow(from_row, codes.data(), scales.data());
      matrix.SetRow(panel * kPanelRows + static_cast<int64_t>(i), {codes.data(), scales.data()});
    }
  });
  return true;
}

void LinearWeightBuilder::CopyFloats(const FloatRows& floats, const FloatMatrix& to) {
  DenseMatrix matrix(open_blas_, to.num_rows, in_features_, to.buffers);
  if (!matrix.values.is_filled()) {
    Fill(to, [&](int64_t panel, std::span<const int64_t> sources) {
      for (size_t i = 0; i < sources.size(); ++i) {
        const int64_t row = panel * kPanelRows + static_cast<int64_t>(i);
        floats.Read(sources[i], matrix.values.as<float>() + row * in_features_);
      }
    });
  }
  matrices_.emplace_back(std::move(matrix));
}

void LinearWeightBuilder::PackFloats(const FloatRows& floats, const FloatMatrix& to) {
  kernels::PackedMatrix matrix(to.num_rows, in_features_, model_.dtype, to.buffers);
  if (!matrix.is_filled()) {
    Fill(to, [&](int64_t panel, std::span<const int64_t> sources) {
      std::vector<float> values(is_transposed_ ? static_cast<size_t>(kPanelRows * in_features_) : 0);
      std::array<kernels::SourceRow, kPanelRows> rows;
      for (size_t i = 0; i < sources.size(); ++i) {
        if (is_transposed_) {
          float* const row = values.data() + static_cast<int64_t>(i) * in_features_;
          floats.Read(sources[i], row);
          rows[i] = {reinterpret_cast<const std::byte*>(row), kernels::DType::kFloat32};
        } else {
          const FloatRows::Slice& from = floats.SliceOf(sources[i]);
          rows[i] = {from.view.Row(FloatRows::RowIn(from, sources[i])), from.view.dtype()};
        }
      }
      matrix.PackPanel(panel, std::span(rows).first(sources.size()));
    });
  }
  matrices_.emplace_back(std::move(matrix), to.ranges);
}

}  // namespace vllm
