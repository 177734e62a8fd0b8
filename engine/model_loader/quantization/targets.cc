#include "engine/model_loader/quantization/targets.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/onig_pattern.h"

namespace vllm {
namespace {

constexpr std::string_view kRegex = "re:";

// Returns true if `name` consists of consecutive whole dot-separated parts of `layer`.
bool HasParts(std::string_view layer, std::string_view name) {
  if (name.empty()) return false;
  for (size_t begin = layer.find(name); begin != std::string_view::npos; begin = layer.find(name, begin + 1)) {
    const size_t end = begin + name.size();
    if ((begin == 0 || layer[begin - 1] == '.') && (end == layer.size() || layer[end] == '.')) return true;
  }
  return false;
}

}  // namespace

bool IsTarget(const std::string& name) {
  if (!name.starts_with(kRegex)) return true;
  try {
    tokenizer::OnigPattern pattern(name.substr(kRegex.size()));
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

bool Matches(const QuantizationTargets& targets, const std::string& layer) {
  if (targets.all) return true;
  return std::any_of(targets.names.begin(), targets.names.end(), [&](const std::string& name) {
    if (!name.starts_with(kRegex)) return HasParts(layer, name);
    std::vector<tokenizer::Match> matches;
    tokenizer::OnigPattern(name.substr(kRegex.size())).FindMatches(layer, 0, matches);
    // If the match does not start at the beginning, the first element is the unmatched text before it.
    return !matches.empty() && matches[0].is_match;
  });
}

}  // namespace vllm
