#include "engine/structured_output/grammar/static_rules.h"

#include <algorithm>

namespace vllm {

bool AlternativesRule::Restrict(const std::vector<bool>& productive) {
  symbols_.assign(1, kEnd);
  starts_.clear();
  has_empty_ = false;
  for (const std::vector<SymbolId>& alternative : alternatives_) {
    if (!std::ranges::all_of(alternative, [&](SymbolId symbol) { return productive[symbol]; })) continue;
    if (alternative.empty()) {
      has_empty_ = true;
      continue;
    }
    starts_.push_back(static_cast<uint32_t>(symbols_.size()));
    symbols_.insert(symbols_.end(), alternative.begin(), alternative.end());
    symbols_.push_back(kEnd);
  }
  return has_empty_ || !starts_.empty();
}

void AlternativesRule::AppendSymbols(std::vector<SymbolId>& symbols) const {
  for (const std::vector<SymbolId>& alternative : alternatives_) {
    symbols.insert(symbols.end(), alternative.begin(), alternative.end());
  }
}

void AlternativesRule::AppendEdges(uint32_t state, std::vector<SymbolEdge>& edges) {
  if (state != 0) {
    if (symbols_[state] != kEnd) edges.push_back({symbols_[state], state + 1});
    return;
  }
  for (const uint32_t start : starts_) edges.push_back({symbols_[start], start + 1});
}

bool RepeatRule::Restrict(const std::vector<bool>& productive) {
  has_items_ = productive[item_];
  has_separators_ = separator_ == kNone || productive[separator_];
  return min_ == 0 || (has_items_ && (min_ == 1 || has_separators_));
}

void RepeatRule::AppendSymbols(std::vector<SymbolId>& symbols) const {
  symbols.push_back(item_);
  if (separator_ != kNone) symbols.push_back(separator_);
}

void RepeatRule::AppendEdges(uint32_t state, std::vector<SymbolEdge>& edges) {
  const uint32_t count = state / 2;
  if (!has_items_ || (count > 0 && !has_separators_)) return;
  if (max_ != kNone && count >= max_) return;
  if (separator_ != kNone && count > 0 && state % 2 == 0) {
    edges.push_back({separator_, state + 1});
    return;
  }
  // Without a limit, counts above the minimum need not be told apart, except 0 from the others.
  const uint32_t next = max_ == kNone ? std::min(count + 1, std::max(min_, 1u)) : count + 1;
  edges.push_back({item_, 2 * next});
}

bool RepeatRule::IsFinal(uint32_t state) { return state % 2 == 0 && state / 2 >= min_; }

}  // namespace vllm
