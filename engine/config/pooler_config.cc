#include "engine/config/pooler_config.h"

#include <algorithm>

namespace vllm {

namespace {

constexpr std::pair<PoolingType, std::string_view> kNames[] = {
    {PoolingType::kMean, "mean"},
    {PoolingType::kCls, "cls"},
    {PoolingType::kLast, "lasttoken"},
    {PoolingType::kMax, "max"},
    {PoolingType::kMeanSqrtLen, "mean_sqrt_len_tokens"},
    {PoolingType::kWeightedMean, "weightedmean"},
};

}  // namespace

std::string_view ToString(PoolingType type) {
  for (const auto& [known, name] : kNames) {
    if (known == type) return name;
  }
  return "";
}

std::optional<PoolingType> ParsePoolingType(std::string_view text) {
  if (text == "last") return PoolingType::kLast;
  for (const auto& [type, name] : kNames) {
    if (name == text) return type;
  }
  return std::nullopt;
}

bool PoolerConfig::NeedsAllTokens() const {
  return std::ranges::any_of(types, [](PoolingType type) { return type != PoolingType::kLast; });
}

int64_t PoolerConfig::VectorSize(int64_t hidden_size) const {
  if (!dense.empty()) return dense.back().out_features;
  return hidden_size * static_cast<int64_t>(types.size());
}

std::string PoolerConfig::DimensionsProblem(int64_t dimensions, int64_t hidden_size) const {
  const std::string value = " (" + std::to_string(dimensions) + ")";
  const int64_t size = VectorSize(hidden_size);
  if (dimensions < 1 || dimensions > size) return "outside 1 to " + std::to_string(size) + value;
  const std::vector<int64_t>& known = matryoshka_dimensions;
  if (known.empty() || dimensions == size || std::ranges::find(known, dimensions) != known.end()) return "";
  std::string list;
  for (const int64_t number : known) list += (list.empty() ? "" : ", ") + std::to_string(number);
  return "the model's vectors can be cut to " + list + value;
}

}  // namespace vllm
