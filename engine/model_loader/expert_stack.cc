#include "engine/model_loader/expert_stack.h"

#include <array>
#include <charconv>
#include <utility>

namespace vllm {

ExpertStack::ExpertStack(const WeightSource& source, std::string prefix, int64_t num_experts)
    : source_(source), prefix_(std::move(prefix)), num_experts_(num_experts) {}

bool ExpertStack::IsIn(const WeightSource& source, const std::string& prefix) {
  return source.Contains(prefix + "gate_up_proj");
}

std::optional<ExpertStack::Member> ExpertStack::Parse(std::string_view name) const {
  constexpr std::string_view kSuffix = ".weight";
  if (!name.starts_with(prefix_) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(prefix_.size());
  name.remove_suffix(kSuffix.size());
  Member member;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), member.expert);
  const auto digits = static_cast<size_t>(end - name.data());
  if (error != std::errc() || digits >= name.size() || name[digits] != '.') return std::nullopt;
  if (member.expert < 0 || member.expert >= num_experts_) return std::nullopt;
  member.matrix = name.substr(digits + 1);
  const bool is_known = member.matrix == "gate_proj" || member.matrix == "up_proj" || member.matrix == "down_proj";
  return is_known ? std::optional(member) : std::nullopt;
}

bool ExpertStack::Contains(std::string_view name) const { return Parse(name) || source_.Contains(name); }

TensorView ExpertStack::Get(std::string_view name, std::span<const int64_t> shape) const {
  const std::optional<Member> member = Parse(name);
  if (!member || shape.size() != 2) return source_.Get(name, shape);
  const bool is_down = member->matrix == "down_proj";
  const int64_t stacked_rows = is_down ? shape[0] : 2 * shape[0];
  TensorView view =
      source_.Get(prefix_ + (is_down ? "down_proj" : "gate_up_proj"), std::array{num_experts_, stacked_rows, shape[1]});
  const int64_t first = member->expert * stacked_rows + (member->matrix == "up_proj" ? shape[0] : 0);
  const auto row_bytes = static_cast<size_t>(view.RowBytes());
  view.data = view.data.subspan(static_cast<size_t>(first) * row_bytes, static_cast<size_t>(shape[0]) * row_bytes);
  view.name = name;
  view.shape.assign(shape.begin(), shape.end());
  return view;
}

}  // namespace vllm
