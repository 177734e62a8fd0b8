#include "engine/layers/linear/lora_linear.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/layers/for_each_row.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {
namespace {

// Limits the scratch. With this many rows, reading A and B again costs little compared with the arithmetic.
constexpr int64_t kRowsAtOnce = 256;

// Packs rows of floating-point matrices as float32. source(i) returns row i.
template <typename F>
LinearMatrix PackFloats(int64_t num_rows, int64_t num_columns, F&& source) {
  kernels::PackedMatrix matrix(num_rows, num_columns, kernels::DType::kFloat32);
  std::array<kernels::SourceRow, kernels::kPanelRows> rows;
  for (int64_t begin = 0; begin < num_rows; begin += kernels::kPanelRows) {
    const auto count = static_cast<size_t>(std::min(kernels::kPanelRows, num_rows - begin));
    for (size_t i = 0; i < count; ++i) rows[i] = source(begin + static_cast<int64_t>(i));
    matrix.PackPanel(begin / kernels::kPanelRows, std::span(rows).first(count));
  }
  return LinearMatrix(std::move(matrix));
}

kernels::SourceRow RowOf(const TensorView& view, int64_t row, int64_t first_column = 0) {
  const kernels::DType dtype = view.dtype();
  return {view.Row(row) + first_column * static_cast<int64_t>(SizeOf(dtype)), dtype};
}

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

LoRALinear::LoRALinear(const LoadContext& load, const std::vector<OutputSlice>& slices, int64_t in_features,
                       Shard columns, std::span<const float> base_bias, bool adds_bias)
    : num_inputs_(columns.count) {
  for (const OutputSlice& slice : slices) num_outputs_ += slice.shard.count;
  if (load.lora == nullptr) return;
  for (size_t slot = 0; slot < load.lora->num_adapters(); ++slot) {
    auto adapter = std::make_unique<Adapter>();
    Shrink shrink;
    int64_t output = 0;
    for (size_t begin = 0, end = 0; begin < slices.size(); begin = end) {
      // Slices of one matrix, such as the heads of a fused QKV matrix, are one block.
      Block block;
      block.first_output = output;
      for (end = begin; end < slices.size() && slices[end].name == slices[begin].name; ++end) {
        block.num_outputs += slices[end].shard.count;
      }
      output += block.num_outputs;
      const LoRAModule* module =
          load.lora->Take(slot, LoRAModule::Kind::kLinear, slices[begin].name, in_features, slices[begin].total_rows);
      if (module == nullptr || block.num_outputs == 0) continue;
      if (module->rank > 0) block.first_rank = shrink.Push(*module);
      AddBlock(load, *module, std::span(slices).subspan(begin, end - begin), base_bias, adds_bias, std::move(block),
               *adapter);
    }
    if (adapter->blocks.empty()) continue;
    adapter->rank = shrink.rank;
    if (shrink.rank > 0) {
      size_t next = 0;
      adapter->a = PackFloats(shrink.rank, num_inputs_, [&](int64_t row) {
        while (row - shrink.modules[next].first_rank >= shrink.modules[next].module->rank) ++next;
        const Shrink::Module& from = shrink.modules[next];
        adapter->scales.push_back(static_cast<float>(from.module->scale));
        return RowOf(from.module->a, row - from.first_rank, columns.begin);
      });
    }
    adapters_.resize(load.lora->num_adapters());
    adapters_[slot] = std::move(adapter);
  }
}

void LoRALinear::AddBlock(const LoadContext& /*load*/, const LoRAModule& module, std::span<const OutputSlice> slices,
                          std::span<const float> base_bias, bool adds_bias, Block block, Adapter& adapter) const {
  std::vector<int64_t> rows;  // of the module's B
  rows.reserve(static_cast<size_t>(block.num_outputs));
  for (const OutputSlice& slice : slices) {
    for (int64_t i = 0; i < slice.shard.count; ++i) rows.push_back(slice.shard.begin + i);
  }
  if (module.rank > 0) {
    block.b = PackFloats(block.num_outputs, module.rank,
                         [&](int64_t i) { return RowOf(module.b, rows[static_cast<size_t>(i)]); });
  }
  if (adds_bias && (module.b_bias || module.bias)) {
    const std::vector<float> b_bias = module.b_bias ? ReadVector(*module.b_bias) : std::vector<float>();
    const std::vector<float> bias = module.bias ? ReadVector(*module.bias) : std::vector<float>();
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<size_t>(rows[i]);
      float sum = b_bias.empty() ? 0.0f : static_cast<float>(module.scale) * b_bias[row];
      if (!bias.empty()) {
        const size_t output = static_cast<size_t>(block.first_output) + i;
        sum += bias[row] - (base_bias.empty() ? 0.0f : base_bias[output]);
      }
      block.bias.push_back(sum);
    }
  }
  if (block.b || !block.bias.empty()) adapter.blocks.push_back(std::move(block));
}

void LoRALinear::Reserve(const StepContext& step, int64_t max_rows) const {
  if (adapters_.empty()) return;
  LoRAWorkspace& workspace = step.workspace->lora;
  workspace.rows.reserve(static_cast<size_t>(max_rows));
  workspace.begin.reserve(adapters_.size() + 1);
  const int64_t rows = std::min(max_rows, kRowsAtOnce);
  Floats(workspace.x, rows * num_inputs_);
  Floats(workspace.delta, rows * num_outputs_);
  for (const std::unique_ptr<const Adapter>& adapter : adapters_) {
    if (adapter == nullptr) continue;
    Floats(workspace.shrunk, rows * adapter->rank);
    if (adapter->a) adapter->a->Reserve(step, rows);
    for (const Block& block : adapter->blocks) {
      if (block.b) block.b->Reserve(step, rows);
    }
  }
}

void LoRALinear::Add(const StepContext& step, const int32_t* slots, const float* x, int64_t x_stride, int64_t num_rows,
                     float* y, int64_t y_stride) const {
  if (slots == nullptr || adapters_.empty()) return;
  // A counting sort by slot keeps each adapter's rows in ascending order.
  LoRAWorkspace& workspace = step.workspace->lora;
  workspace.begin.assign(adapters_.size() + 1, 0);
  for (int64_t row = 0; row < num_rows; ++row) {
    if (slots[row] >= 0) ++workspace.begin[static_cast<size_t>(slots[row]) + 1];
  }
  for (size_t i = 1; i < workspace.begin.size(); ++i) workspace.begin[i] += workspace.begin[i - 1];
  workspace.rows.resize(workspace.begin.back());
  for (int64_t row = 0; row < num_rows; ++row) {
    if (slots[row] >= 0) workspace.rows[workspace.begin[static_cast<size_t>(slots[row])]++] = static_cast<int32_t>(row);
  }
  // begin[i] has advanced to the end of adapter i's rows.
  size_t begin = 0;
  for (size_t slot = 0; slot < adapters_.size(); ++slot) {
    const size_t end = workspace.begin[slot];
    for (size_t from = begin; adapters_[slot] != nullptr && from < end; from += kRowsAtOnce) {
      const size_t count = std::min(end - from, static_cast<size_t>(kRowsAtOnce));
      AddRows(step, *adapters_[slot], std::span(workspace.rows).subspan(from, count), x, x_stride, y, y_stride);
    }
    begin = end;
  }
}

void LoRALinear::AddRows(const StepContext& step, const Adapter& adapter, std::span<const int32_t> rows, const float* x,
                         int64_t x_stride, float* y, int64_t y_stride) const {
  LoRAWorkspace& workspace = step.workspace->lora;
  const auto count = static_cast<int64_t>(rows.size());
  float* const shrunk = Floats(workspace.shrunk, count * adapter.rank);
  float* const delta = Floats(workspace.delta, count * num_outputs_);
  if (adapter.a) {
    const float* inputs = x + rows.front() * x_stride;
    int64_t stride = x_stride;
    if (rows.back() - rows.front() + 1 != count) {
      float* const gathered = Floats(workspace.x, count * num_inputs_);
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(gathered + i * num_inputs_, x + rows[static_cast<size_t>(i)] * x_stride,
                    static_cast<size_t>(num_inputs_) * sizeof(float));
      }
      inputs = gathered;
      stride = num_inputs_;
    }
    adapter.a->Multiply(step, {nullptr, inputs, stride, count, shrunk, adapter.rank});
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < adapter.rank; ++k) shrunk[i * adapter.rank + k] *= adapter.scales[static_cast<size_t>(k)];
    }
  }
  for (const Block& block : adapter.blocks) {
    const float* const bias = block.bias.empty() ? nullptr : block.bias.data();
    if (block.b) {
      block.b->Multiply(
          step, {bias, shrunk + block.first_rank, adapter.rank, count, delta + block.first_output, num_outputs_});
    } else {
      for (int64_t i = 0; i < count; ++i) {
        std::copy(block.bias.begin(), block.bias.end(), delta + i * num_outputs_ + block.first_output);
      }
    }
  }
  ForEachRow(step, count, num_outputs_, [&](int64_t i) {
    for (const Block& block : adapter.blocks) {
      step.kernels->add(y + rows[static_cast<size_t>(i)] * y_stride + block.first_output,
                        delta + i * num_outputs_ + block.first_output, block.num_outputs);
    }
  });
}

}  // namespace vllm
