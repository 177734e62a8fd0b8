// ExpertStack: a view of a checkpoint in which the matrices of all experts of a layer are stacked, under the names of
// single experts. Borrows the checkpoint's source. Used while one mixture-of-experts layer is built, on the rank's
// thread.
//
//   <prefix>gate_up_proj [num_experts, 2 * size, hidden]   rows of <prefix>N.gate_proj.weight, then of up_proj
//   <prefix>down_proj [num_experts, hidden, size]          <prefix>N.down_proj.weight
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/weights.h"

namespace vllm {

class ExpertStack final : public WeightSource {
 public:
  // `prefix` is that of the experts' tensors, such as "model.layers.0.experts.".
  ExpertStack(const WeightSource& source, std::string prefix, int64_t num_experts);

  // Returns true if `source` has the stacked matrices.
  static bool IsIn(const WeightSource& source, const std::string& prefix);

  bool Contains(std::string_view name) const override;
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override;
  std::optional<std::vector<int64_t>> ShapeOf(std::string_view name) const override { return source_.ShapeOf(name); }
  void DropPages() const override { source_.DropPages(); }
  bool DecidesBiases() const override { return source_.DecidesBiases(); }
  std::vector<std::string> Names() const override { return source_.Names(); }
  std::vector<const MappedFile*> Files() const override { return source_.Files(); }
  int64_t TotalBytes() const override { return source_.TotalBytes(); }

 private:
  struct Member {
    int64_t expert = 0;
    std::string_view matrix;  // "gate_proj", "up_proj" or "down_proj"
  };
  // Returns nullopt if `name` is not the weight of an expert.
  std::optional<Member> Parse(std::string_view name) const;

  const WeightSource& source_;
  std::string prefix_;
  int64_t num_experts_;
};

}  // namespace vllm
