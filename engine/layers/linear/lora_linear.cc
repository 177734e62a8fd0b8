#include "engine/layers/linear/lora_linear.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/layers/for_each_row.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {
namespace {

// Limits the scratch. With this many rows, reading A and B again costs little compared with the arithmetic.
constexpr int64_t kRowsAtOnce = 256;
// A task computes A x of at most this many rows.
constexpr int64_t kRowsPerPiece = 32;
// Below this many multiply-adds, waking another thread costs more than it saves.
constexpr int64_t kMinWorkPerTask = 1 << 18;

// Calls f(i) for each i in [0, count), on the rank's threads if the work, in multiply-adds, is worth it.
template <typename F>
void ForEachTask(const StepContext& step, int64_t count, int64_t work, const F& f) {
  if (work < kMinWorkPerTask) {
    for (int64_t i = 0; i < count; ++i) f(i);
  } else {
    step.threads->ParallelFor(count, [&](int64_t i, int /*thread*/) { f(i); });
  }
}

// Packs rows of floating-point matrices in the type of the model, like vLLM with lora_dtype auto. source(i) returns row
// i. In a decode step, the time to read A and B counts, which is half as long as for float32.
template <typename F>
kernels::PackedMatrix PackFloats(kernels::DType dtype, int64_t num_rows, int64_t num_columns, F&& source) {
  kernels::PackedMatrix matrix(num_rows, num_columns, dtype);
  std::array<kernels::SourceRow, kernels::kPanelRows> rows;
  for (int64_t begin = 0; begin < num_rows; begin += kernels::kPanelRows) {
    const auto count = static_cast<size_t>(std::min(kernels::kPanelRows, num_rows - begin));
    for (size_t i = 0; i < count; ++i) rows[i] = source(begin + static_cast<int64_t>(i));
    matrix.PackPanel(begin / kernels::kPanelRows, std::span(rows).first(count));
  }
  return matrix;
}

kernels::SourceRow RowOf(const TensorView& view, int64_t row) { return {view.Row(row), view.dtype()}; }

std::vector<float> ReadVector(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.shape.back()));
  kernels::ConvertToFloat(view.Row(0), view.dtype(), view.shape.back(), values.data());
  return values;
}

float* Floats(kernels::AlignedBuffer& buffer, int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  if (buffer.size_bytes() < bytes) buffer = kernels::AlignedBuffer(bytes);
  return buffer.as<float>();
}

}  // namespace

struct LoRALinear::Shrink {
  struct Module {
    const LoRAModule* module = nullptr;
    int64_t first_rank = 0;
  };
  std::vector<Module> modules;
  int64_t rank = 0;

  // Returns the module's first row in the stacked matrix. A module that several blocks use is stacked once.
  int64_t Push(const LoRAModule& module) {
    for (const Module& pushed : modules) {
      if (pushed.module == &module) return pushed.first_rank;
    }
    modules.push_back({&module, rank});
    return std::exchange(rank, rank + module.rank);
  }
};

LoRALinear::LoRALinear(const LoadContext& load, Layer layer)
    : step_(load.step), dtype_(load.config.model.dtype), layer_(std::move(layer)) {
  for (const OutputSlice& slice : layer_.slices) num_outputs_ += slice.shard.count;
  if (load.lora != nullptr) load.lora->Register(this);
}

void LoRALinear::Take(size_t slot, LoRAModules& modules) {
  if (taken_.size() <= slot) {
    taken_.resize(slot + 1);
    adapters_.resize(slot + 1);
  }
  std::vector<TakenModule>& all = taken_[slot];
  all.clear();
  const std::vector<OutputSlice>& slices = layer_.slices;
  int64_t output = 0, rank = 0;
  for (size_t begin = 0, end = 0; begin < slices.size(); begin = end) {
    TakenModule taken{.first_slice = begin, .first_output = output};
    for (end = begin; end < slices.size() && slices[end].name == slices[begin].name; ++end) {
      taken.num_outputs += slices[end].shard.count;
    }
    taken.num_slices = end - begin;
    output += taken.num_outputs;
    taken.module =
        modules.Take(LoRAModule::Kind::kLinear, slices[begin].name, layer_.in_features, slices[begin].total_rows);
    if (taken.module == nullptr || taken.num_outputs == 0) continue;
    if (taken.module->magnitude && layer_.weight == nullptr) {
      throw ModelError("cannot apply " + Escape(taken.module->magnitude->name) +
                       ": DoRA of this layer is not supported");
    }
    rank += taken.module->rank;
    all.push_back(taken);
  }
  max_rank_ = std::max(max_rank_, rank);
}

void LoRALinear::Load(size_t slot) {
  const std::vector<TakenModule>& all = taken_[slot];
  if (all.empty()) return;
  auto adapter = std::make_unique<Adapter>();
  Shrink shrink;
  for (const TakenModule& taken : all) {
    AddBlock(taken, taken.module->rank > 0 ? shrink.Push(*taken.module) : 0, *adapter);
  }
  if (adapter->blocks.empty()) return;
  adapter->rank = shrink.rank;
  if (shrink.rank > 0) {
    size_t next = 0;
    adapter->a = PackFloats(dtype_, shrink.rank, layer_.in_features, [&](int64_t row) {
      while (row - shrink.modules[next].first_rank >= shrink.modules[next].module->rank) ++next;
      const Shrink::Module& from = shrink.modules[next];
      adapter->scales.push_back(static_cast<float>(from.module->scale));
      return RowOf(from.module->a, row - from.first_rank);
    });
  }
  adapters_[slot] = std::move(adapter);
  if (max_rows_ > 0) Reserve(max_rows_);
}

void LoRALinear::Unload(size_t slot) { adapters_[slot].reset(); }

void LoRALinear::AddBlock(const TakenModule& taken, int64_t first_rank, Adapter& adapter) const {
  const LoRAModule& module = *taken.module;
  Block block;
  block.first_output = taken.first_output;
  block.num_outputs = taken.num_outputs;
  block.first_rank = first_rank;
  std::vector<int64_t> rows;  // of the module's B
  rows.reserve(static_cast<size_t>(block.num_outputs));
  for (const OutputSlice& slice : std::span(layer_.slices).subspan(taken.first_slice, taken.num_slices)) {
    for (int64_t i = 0; i < slice.shard.count; ++i) rows.push_back(slice.shard.begin + i);
  }
  if (module.rank > 0) {
    block.b = PackFloats(dtype_, block.num_outputs, module.rank,
                         [&](int64_t i) { return RowOf(module.b, rows[static_cast<size_t>(i)]); });
  }
  const std::span<const float> base_bias =
      layer_.bias.empty() ? layer_.bias : layer_.bias.subspan(static_cast<size_t>(block.first_output), rows.size());
  if (module.b_bias) {
    const std::vector<float> bias = ReadVector(*module.b_bias);
    for (const int64_t row : rows) {
      block.b_bias.push_back(static_cast<float>(module.scale) * bias[static_cast<size_t>(row)]);
    }
  }
  if (module.bias) {
    const std::vector<float> bias = ReadVector(*module.bias);
    for (size_t i = 0; i < rows.size(); ++i) {
      block.bias.push_back(bias[static_cast<size_t>(rows[i])] - (base_bias.empty() ? 0.0f : base_bias[i]));
    }
  }
  if (module.magnitude) {
    const std::vector<float> magnitude = ReadVector(*module.magnitude);
    const std::vector<float> norms = RowNorms(module, block.first_output, rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      block.magnitude.push_back(magnitude[static_cast<size_t>(rows[i])] / norms[i]);
    }
    block.base_bias.assign(base_bias.begin(), base_bias.end());
  }
  if (block.b || !block.bias.empty()) adapter.blocks.push_back(std::move(block));
}

// Returns the norms of rows of W + scale * B A. `rows` are the rows of B, the first of which
// belongs to row first_output of layer_.weight.
std::vector<float> LoRALinear::RowNorms(const LoRAModule& module, int64_t first_output,
                                        const std::vector<int64_t>& rows) const {
  const int64_t width = layer_.in_features;
  std::vector<float> a(static_cast<size_t>(module.rank * width));
  for (int64_t k = 0; k < module.rank; ++k) {
    const kernels::SourceRow row = RowOf(module.a, k);
    kernels::ConvertToFloat(row.data, row.dtype, width, a.data() + k * width);
  }
  layer_.weight->Reserve(step_, 1);
  std::vector<float> norms(rows.size());
  ForEachRow(step_, static_cast<int64_t>(rows.size()), width * module.rank, [&](int64_t i, int thread) {
    std::vector<float> sum(static_cast<size_t>(width)), b(static_cast<size_t>(module.rank));
    const kernels::SourceRow row = RowOf(module.b, rows[static_cast<size_t>(i)]);
    kernels::ConvertToFloat(row.data, row.dtype, module.rank, b.data());
    layer_.weight->UnpackRow(step_, first_output + i, thread, sum.data());
    for (int64_t k = 0; k < module.rank; ++k) {
      const float factor = static_cast<float>(module.scale) * b[static_cast<size_t>(k)];
      step_.kernels->add_scaled(sum.data(), a.data() + k * width, factor, width);
    }
    norms[static_cast<size_t>(i)] = std::sqrt(step_.kernels->sum_of_squares(sum.data(), width));
  });
  return norms;
}

void LoRALinear::Reserve(int64_t max_rows) const {
  max_rows_ = max_rows;
  if (adapters_.empty()) return;
  LoRAWorkspace& workspace = step_.workspace->lora;
  workspace.rows.reserve(static_cast<size_t>(max_rows));
  workspace.begin.reserve(adapters_.size() + 1);
  const int64_t rows = std::min(max_rows, kRowsAtOnce);
  workspace.pieces.reserve(static_cast<size_t>(rows));
  Floats(workspace.x, rows * layer_.in_features);
  Floats(workspace.shrunk, rows * max_rank_);
  Floats(workspace.delta, rows * num_outputs_);
  const size_t max_runs = static_cast<size_t>(num_outputs_ / kernels::kPanelRows) + layer_.slices.size();
  workspace.runs.reserve(max_runs * static_cast<size_t>(rows));
}

bool LoRALinear::HasAdapters(const int32_t* slots, int64_t num_rows) const {
  if (slots == nullptr || adapters_.empty()) return false;
  return std::any_of(slots, slots + num_rows,
                     [this](int32_t slot) { return slot >= 0 && adapters_[static_cast<size_t>(slot)] != nullptr; });
}

void LoRALinear::Add(const int32_t* slots, const float* x, int64_t x_stride, int64_t num_rows, float* y,
                     int64_t y_stride) const {
  if (slots == nullptr || adapters_.empty()) return;
  const auto has_adapter = [&](int64_t row) {
    return slots[row] >= 0 && adapters_[static_cast<size_t>(slots[row])] != nullptr;
  };
  // A counting sort by slot keeps each adapter's rows in ascending order.
  LoRAWorkspace& workspace = step_.workspace->lora;
  workspace.begin.assign(adapters_.size() + 1, 0);
  for (int64_t row = 0; row < num_rows; ++row) {
    if (has_adapter(row)) ++workspace.begin[static_cast<size_t>(slots[row]) + 1];
  }
  for (size_t i = 1; i < workspace.begin.size(); ++i) workspace.begin[i] += workspace.begin[i - 1];
  workspace.rows.resize(workspace.begin.back());
  for (int64_t row = 0; row < num_rows; ++row) {
    if (has_adapter(row))
      workspace.rows[workspace.begin[static_cast<size_t>(slots[row])]++] = static_cast<int32_t>(row);
  }
  const auto total = static_cast<int64_t>(workspace.rows.size());
  for (int64_t begin = 0; begin < total; begin += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, total - begin);
    const auto rows =
        std::span<const int32_t>(workspace.rows).subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
    workspace.pieces.clear();
    for (int64_t i = 0; i < count; ++i) {
      const auto slot = static_cast<size_t>(slots[rows[static_cast<size_t>(i)]]);
      if (workspace.pieces.empty() || workspace.pieces.back().slot != slot) workspace.pieces.push_back({slot, i, 0});
      ++workspace.pieces.back().count;
    }
    AddRound({rows, x, x_stride, y, y_stride});
  }
}

void LoRALinear::AddRound(const Round& round) const {
  LoRAWorkspace& workspace = step_.workspace->lora;
  const auto count = static_cast<int64_t>(round.rows.size());
  Floats(workspace.x, count * layer_.in_features);
  Floats(workspace.shrunk, count * max_rank_);
  Floats(workspace.delta, count * num_outputs_);

  // B is read once per adapter, so its runs have all rows of the adapter. There are enough runs for all threads.
  workspace.runs.clear();
  const int64_t max_runs = 4 * step_.threads->num_threads();
  for (const LoRAWorkspace::Piece& piece : workspace.pieces) {
    const Adapter& adapter = *adapters_[piece.slot];
    for (size_t b = 0; b < adapter.blocks.size(); ++b) {
      const int64_t num_panels = (adapter.blocks[b].num_outputs + kernels::kPanelRows - 1) / kernels::kPanelRows;
      const int64_t work = num_panels * kernels::kPanelRows * adapter.rank * piece.count;
      const int64_t num_runs = std::clamp<int64_t>(4 * work / kMinWorkPerTask, 1, std::min(max_runs, num_panels));
      for (int64_t i = 0; i < num_runs; ++i) {
        workspace.runs.push_back({piece, b, num_panels * i / num_runs, num_panels * (i + 1) / num_runs});
      }
    }
  }
  // A is small, so several tasks may read it.
  for (size_t i = 0; i < workspace.pieces.size(); ++i) {
    LoRAWorkspace::Piece piece = workspace.pieces[i];
    if (piece.count <= kRowsPerPiece) continue;
    workspace.pieces[i].count = kRowsPerPiece;
    piece.begin += kRowsPerPiece;
    piece.count -= kRowsPerPiece;
    workspace.pieces.insert(workspace.pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1, piece);
  }
  ForEachTask(step_, static_cast<int64_t>(workspace.pieces.size()), count * layer_.in_features * max_rank_,
              [&](int64_t i) { ShrinkPiece(round, workspace.pieces[static_cast<size_t>(i)]); });
  ForEachTask(step_, static_cast<int64_t>(workspace.runs.size()), count * num_outputs_ * max_rank_,
              [&](int64_t i) { Expand(round, workspace.runs[static_cast<size_t>(i)]); });
}

void LoRALinear::ShrinkPiece(const Round& round, const LoRAWorkspace::Piece& piece) const {
  const Adapter& adapter = *adapters_[piece.slot];
  if (!adapter.a) return;
  LoRAWorkspace& workspace = step_.workspace->lora;
  const auto rows = round.rows.subspan(static_cast<size_t>(piece.begin), static_cast<size_t>(piece.count));
  const float* x = round.x + rows.front() * round.x_stride;
  int64_t x_stride = round.x_stride;
  if (rows.back() - rows.front() + 1 != piece.count) {
    float* const gathered = workspace.x.as<float>() + piece.begin * layer_.in_features;
    for (int64_t i = 0; i < piece.count; ++i) {
      std::memcpy(gathered + i * layer_.in_features, round.x + rows[static_cast<size_t>(i)] * round.x_stride,
                  static_cast<size_t>(layer_.in_features) * sizeof(float));
    }
    x = gathered;
    x_stride = layer_.in_features;
  }
  float* const shrunk = workspace.shrunk.as<float>() + piece.begin * max_rank_;
  const kernels::PackedMatrixView& a = adapter.a->view();
  step_.kernels->linear(x, x_stride, piece.count, a, nullptr, shrunk, max_rank_, 0, a.num_panels());
  for (int64_t i = 0; i < piece.count; ++i) {
    for (int64_t k = 0; k < adapter.rank; ++k) shrunk[i * max_rank_ + k] *= adapter.scales[static_cast<size_t>(k)];
  }
}

void LoRALinear::Expand(const Round& round, const LoRAWorkspace::Run& run) const {
  LoRAWorkspace& workspace = step_.workspace->lora;
  const Block& block = adapters_[run.piece.slot]->blocks[run.block];
  float* const delta = workspace.delta.as<float>() + run.piece.begin * num_outputs_ + block.first_output;
  if (block.b) {
    const float* const shrunk = workspace.shrunk.as<float>() + run.piece.begin * max_rank_ + block.first_rank;
    step_.kernels->linear(shrunk, max_rank_, run.piece.count, block.b->view(),
                          block.b_bias.empty() ? nullptr : block.b_bias.data(), delta, num_outputs_, run.begin_panel,
                          run.end_panel);
  }
  const int64_t begin = run.begin_panel * kernels::kPanelRows;
  const int64_t end = std::min(block.num_outputs, run.end_panel * kernels::kPanelRows);
  for (int64_t i = 0; i < run.piece.count; ++i) {
    const int64_t row = round.rows[static_cast<size_t>(run.piece.begin + i)];
    AddDelta(block, begin, end, delta + i * num_outputs_, round.y + row * round.y_stride + block.first_output);
  }
}

void LoRALinear::AddDelta(const Block& block, int64_t begin, int64_t end, const float* delta, float* y) const {
  if (!block.magnitude.empty()) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const float bias = block.base_bias.empty() ? 0.0f : block.base_bias[i];
      y[i] = block.magnitude[i] * (y[i] - bias + delta[i]) + bias;
    }
  } else if (block.b) {
    step_.kernels->add(y + begin, delta + begin, end - begin);
  }
  if (!block.bias.empty()) step_.kernels->add(y + begin, block.bias.data() + begin, end - begin);
}

}  // namespace vllm
