#include "engine/layers/linear/lora_embedding.h"

#include <utility>

#include "engine/layers/for_each_row.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {
namespace {

// Returns the transpose of a matrix, multiplied by `factor`.
std::vector<float> Transposed(const TensorView& view, float factor) {
  const auto num_rows = static_cast<size_t>(view.shape[0]), num_columns = static_cast<size_t>(view.shape[1]);
  std::vector<float> row(num_columns), out(num_rows * num_columns);
  for (size_t i = 0; i < num_rows; ++i) {
    kernels::ConvertToFloat(view.Row(static_cast<int64_t>(i)), view.dtype(), view.shape[1], row.data());
    for (size_t k = 0; k < num_columns; ++k) out[k * num_rows + i] = row[k] * factor;
  }
  return out;
}

}  // namespace

LoRAEmbedding::LoRAEmbedding(const LoadContext& load, std::string name, int64_t vocab_size, int64_t hidden_size)
    : name_(std::move(name)), vocab_size_(vocab_size), hidden_size_(hidden_size) {
  if (load.lora != nullptr) load.lora->Register(this);
}

void LoRAEmbedding::Take(size_t slot, LoRAModules& modules) {
  if (taken_.size() <= slot) {
    taken_.resize(slot + 1);
    adapters_.resize(slot + 1);
  }
  taken_[slot] = modules.Take(LoRAModule::Kind::kEmbedding, name_, vocab_size_, hidden_size_);
}

void LoRAEmbedding::Load(size_t slot) {
  const LoRAModule* const module = taken_[slot];
  if (module == nullptr) return;
  adapters_[slot] = {module->rank, Transposed(module->a, static_cast<float>(module->scale)),
                     Transposed(module->b, 1.0f)};
}

void LoRAEmbedding::Unload(size_t slot) { adapters_[slot] = {}; }

void LoRAEmbedding::Add(const StepContext& step, const int32_t* slots, std::span<const int32_t> token_ids,
                        float* rows) const {
  if (slots == nullptr || adapters_.empty()) return;
  ForEachRow(step, static_cast<int64_t>(token_ids.size()), hidden_size_, [&](int64_t row) {
    if (slots[row] < 0) return;
    const Adapter& adapter = adapters_[static_cast<size_t>(slots[row])];
    const float* const a = adapter.a.data() + token_ids[static_cast<size_t>(row)] * adapter.rank;
    for (int64_t k = 0; k < adapter.rank; ++k) {
      step.kernels->add_scaled(rows + row * hidden_size_, adapter.b.data() + k * hidden_size_, a[k], hidden_size_);
    }
  });
}

}  // namespace vllm
