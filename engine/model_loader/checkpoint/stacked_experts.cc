#include "engine/model_loader/checkpoint/stacked_experts.h"

#include <charconv>

namespace vllm {

std::optional<StackedExperts::Part> StackedExperts::Find(std::string_view name) const {
  constexpr int64_t kMaxSize = int64_t{1} << 32;
  constexpr std::string_view kExperts = ".experts.";
  constexpr std::string_view kWeight = ".weight";
  const size_t experts = name.rfind(kExperts);
  if (experts == name.npos || !name.ends_with(kWeight)) return std::nullopt;
  const std::string_view prefix = name.substr(0, experts + kExperts.size());
  std::string_view rest = name.substr(prefix.size());
  rest.remove_suffix(kWeight.size());
  Part part;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), part.expert);
  if (error != std::errc() || end == rest.data() + rest.size() || *end != '.' || part.expert < 0) return std::nullopt;
  const std::string_view projection(end + 1, static_cast<size_t>(rest.data() + rest.size() - end - 1));
  const bool is_gate = projection == "gate_proj";
  const bool is_down = projection == "down_proj";
  if (!is_gate && !is_down && projection != "up_proj") return std::nullopt;
  const std::string gate_up = std::string(prefix) + "gate_up_proj", down = std::string(prefix) + "down_proj";
  const auto gate_up_shape = inner_->ShapeOf(gate_up), down_shape = inner_->ShapeOf(down);
  if (!gate_up_shape || !down_shape || gate_up_shape->size() != 3 || down_shape->size() != 3) return std::nullopt;
  // Other models, such as gpt-oss, have transposed matrices under the same names.
  const int64_t num_experts = (*gate_up_shape)[0], hidden_size = (*gate_up_shape)[2], intermediate = (*down_shape)[2];
  if (intermediate <= 0 || intermediate > kMaxSize || hidden_size <= 0) return std::nullopt;
  const bool fits = *gate_up_shape == std::vector<int64_t>{num_experts, 2 * intermediate, hidden_size} &&
                    *down_shape == std::vector<int64_t>{num_experts, hidden_size, intermediate};
  if (!fits || part.expert >= num_experts) return std::nullopt;
  part.stacked = is_down ? down : gate_up;
  part.shape = is_down ? *down_shape : *gate_up_shape;
  part.num_rows = is_down ? hidden_size : intermediate;
  part.first_row = is_down || is_gate ? 0 : intermediate;
  return part;
}

TensorView StackedExperts::Get(std::string_view name, std::span<const int64_t> shape) const {
  const std::optional<Part> part = inner_->Contains(name) ? std::nullopt : Find(name);
  const bool fits = part && shape.size() == 2 && shape[0] == part->num_rows && shape[1] == part->shape[2];
  if (!fits) return inner_->Get(name, shape);
  const TensorView stacked = inner_->Get(part->stacked, part->shape);
  TensorView view = stacked;
  view.name = std::string(name);
  view.shape.assign(shape.begin(), shape.end());
  const auto row_bytes = static_cast<size_t>(stacked.RowBytes());
  const auto first = static_cast<size_t>(part->expert * part->shape[1] + part->first_row);
  view.data = stacked.data.subspan(first * row_bytes, static_cast<size_t>(part->num_rows) * row_bytes);
  return view;
}

std::optional<std::vector<int64_t>> StackedExperts::ShapeOf(std::string_view name) const {
  if (inner_->Contains(name)) return inner_->ShapeOf(name);
  const std::optional<Part> part = Find(name);
  if (!part) return std::nullopt;
  return std::vector<int64_t>{part->num_rows, part->shape[2]};
}

}  // namespace vllm
