#include "engine/lora/lora_modules.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {
namespace {

[[noreturn]] void FailShape(const LoRAAdapter& adapter, const TensorView& view, const char* dimension, int64_t size,
                            int64_t expected) {
  throw ModelError("adapter " + Escape(adapter.path) + ": tensor " + Escape(view.name) +
                   " does not fit the model: " + dimension + " is " + std::to_string(size) +
                   ", that of the model's layer is " + std::to_string(expected));
}

}  // namespace

LoRAModules::LoRAModules(const LoRAAdapter& adapter, const WeightSource& base, const std::string& tied_head)
    : adapter_(adapter), base_(base), tied_head_(tied_head), taken_(adapter.modules.size()) {}

const LoRAModule* LoRAModules::Take(LoRAModule::Kind kind, std::string_view name, int64_t in_features,
                                    int64_t out_features) {
  const LoRAAdapter& from = adapter_;
  const std::string canonical = CanonicalModuleName(name);
  const auto it = std::lower_bound(
      from.modules.begin(), from.modules.end(), std::tie(canonical, kind),
      [](const LoRAModule& module, const auto& key) { return std::tie(module.name, module.kind) < key; });
  if (it == from.modules.end() || it->name != canonical || it->kind != kind) return nullptr;
  if (it->rank > 0) {
    if (it->a.shape[1] != in_features) FailShape(from, it->a, "the input size", it->a.shape[1], in_features);
    if (it->b.shape[0] != out_features) FailShape(from, it->b, "the output size", it->b.shape[0], out_features);
  }
  if (it->magnitude && it->magnitude->shape[0] != out_features) {
    FailShape(from, *it->magnitude, "the output size", it->magnitude->shape[0], out_features);
  }
  if (it->bias && it->bias->shape[0] != out_features) {
    FailShape(from, *it->bias, "the output size", it->bias->shape[0], out_features);
  }
  if (it->base_weight) {
    const std::string tensor = std::string(name) + ".weight";
    CheckCopy(*it->base_weight, base_.Contains(tensor) ? tensor : tied_head_);
  }
  taken_[static_cast<size_t>(it - from.modules.begin())] = true;
  return &*it;
}

void LoRAModules::CheckCopy(const TensorView& copy, const std::string& tensor) const {
  const std::string what = "adapter " + Escape(adapter_.path) + ": tensor " + Escape(copy.name) + ": ";
  if (!base_.Contains(tensor)) throw ModelError(what + "the model has no such tensor to compare it with");
  const TensorView base = base_.Get(tensor, copy.shape);
  if (kernels::BlockFormat(base.type)) {
    throw ModelError(what + "cannot compare this copy with the model's quantized weight");
  }
  const int64_t width = copy.shape.back();
  std::vector<float> copied(static_cast<size_t>(width)), own(static_cast<size_t>(width));
  for (int64_t row = 0; row < copy.shape[0]; ++row) {
    kernels::ConvertToFloat(copy.Row(row), copy.dtype(), width, copied.data());
    kernels::ConvertToFloat(base.Row(row), base.dtype(), width, own.data());
    if (copied != own) {
      throw ModelError(what + "this copy of a weight of the base model differs from that of the model (row " +
                           std::to_string(row) + ")",
                       "Replaced embeddings and output projections are not supported.");
    }
  }
}

void LoRAModules::CheckAllTaken() const {
  const auto left = std::count(taken_.begin(), taken_.end(), false);
  if (left == 0) return;
  const auto first = static_cast<size_t>(std::find(taken_.begin(), taken_.end(), false) - taken_.begin());
  throw ModelError("adapter " + Escape(adapter_.path) + ": the model has no layer for tensor " +
                       Escape(adapter_.modules[first].tensor_name) + " (" + std::to_string(left) + " of " +
                       std::to_string(adapter_.modules.size()) + " modules do not fit)",
                   "Check that the adapter was trained on this model.");
}

}  // namespace vllm
