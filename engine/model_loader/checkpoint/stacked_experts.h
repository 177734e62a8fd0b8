// StackedExperts: gives each expert's matrices separate names if the checkpoint has them in one tensor:
//
//   experts.gate_up_proj [num_experts, 2 * intermediate_size, hidden_size]     experts.<i>.gate_proj.weight,
//                                                                              experts.<i>.up_proj.weight
//   experts.down_proj [num_experts, hidden_size, intermediate_size]            experts.<i>.down_proj.weight
//
// All other tensors are those of the inner source. Owned by the code that opened it. Immutable; any thread may read.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/weights.h"

namespace vllm {

class StackedExperts final : public WeightSource {
 public:
  explicit StackedExperts(std::unique_ptr<WeightSource> inner) : inner_(std::move(inner)) {}

  bool Contains(std::string_view name) const override { return inner_->Contains(name) || Find(name).has_value(); }
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override;
  std::optional<std::vector<int64_t>> ShapeOf(std::string_view name) const override;
  void DropPages() const override { inner_->DropPages(); }
  bool DecidesBiases() const override { return inner_->DecidesBiases(); }
  std::vector<std::string> Names() const override { return inner_->Names(); }
  std::vector<const MappedFile*> Files() const override { return inner_->Files(); }
  int64_t TotalBytes() const override { return inner_->TotalBytes(); }

 private:
  // Rows [first_row, first_row + num_rows) of expert `expert` in a stacked tensor.
  struct Part {
    std::string stacked;
    std::vector<int64_t> shape;  // of the stacked tensor
    int64_t expert = 0;
    int64_t first_row = 0;
    int64_t num_rows = 0;
  };
  // Returns nullopt if the name is not that of an expert's matrix in a stacked tensor.
  std::optional<Part> Find(std::string_view name) const;

  std::unique_ptr<WeightSource> inner_;
};

}  // namespace vllm
