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

}  // namespace vllm
