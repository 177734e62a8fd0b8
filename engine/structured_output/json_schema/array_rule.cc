#include "engine/structured_output/json_schema/array_rule.h"

#include <algorithm>
#include <utility>

namespace vllm {

ArrayRule::ArrayRule(Parts parts) : parts_(std::move(parts)) {}

bool ArrayRule::Restrict(const std::vector<bool>& productive) {
  productive_.clear();
  AppendSymbols(productive_);
  std::erase_if(productive_, [&](SymbolId symbol) { return !productive[symbol]; });
  std::sort(productive_.begin(), productive_.end());
  productive_.erase(std::unique(productive_.begin(), productive_.end()), productive_.end());
  states_.assign(2, {});
  ids_.clear();
  max_length_ = 0;
  if (!parts_.unique_values.empty()) {
    for (const SymbolId value : parts_.unique_values) max_length_ += productive[value] ? 1 : 0;
  } else {
    while (max_length_ < parts_.prefix.size() && IsProductive(parts_.prefix[max_length_].any)) ++max_length_;
    if (max_length_ == parts_.prefix.size() && IsProductive(parts_.items.any)) max_length_ = UINT64_MAX;
  }
  max_length_ = std::min(max_length_, parts_.max_items);
  Position start;
  start.seen.assign((parts_.unique_values.size() + 7) / 8, '\0');
  return CanEnd(start);
}

void ArrayRule::AppendSymbols(std::vector<SymbolId>& symbols) const {
  const auto append = [&](const Element& element) {
    for (const SymbolId symbol : {element.any, element.inside, element.outside}) {
      if (symbol != kNoSymbol) symbols.push_back(symbol);
    }
  };
  for (const Element& element : parts_.prefix) append(element);
  append(parts_.items);
  symbols.insert(symbols.end(), parts_.unique_values.begin(), parts_.unique_values.end());
}

bool ArrayRule::MayClose(const Position& position) const {
  return position.count >= parts_.min_items && (!parts_.has_contains || position.contained >= parts_.min_contains);
}

bool ArrayRule::CanEnd(const Position& position) const {
  if (max_length_ < parts_.min_items) return false;
  if (!parts_.has_contains || position.contained >= parts_.min_contains) return true;
  uint64_t num_needed = parts_.min_contains - position.contained;
  for (uint64_t i = position.count; i < parts_.prefix.size() && i < max_length_; ++i) {
    if (IsProductive(parts_.prefix[i].inside) && --num_needed == 0) return true;
  }
  if (!IsProductive(parts_.items.inside)) return false;
  const uint64_t first = std::max<uint64_t>(position.count, parts_.prefix.size());
  return max_length_ > first && max_length_ - first >= num_needed;
}

uint32_t ArrayRule::StateOf(const Position& position) {
  std::string key =
      std::to_string(position.count) + "," + std::to_string(position.contained) + (position.needs_comma ? ",c" : ",-");
  key += position.seen;
  const auto [it, inserted] = ids_.try_emplace(std::move(key), static_cast<uint32_t>(states_.size()));
  if (inserted) states_.push_back(position);
  return it->second;
}

void ArrayRule::AppendElements(const Position& position, std::vector<SymbolEdge>& edges) {
  if (position.count >= max_length_) return;
  // Without an upper bound, counting stops at the lower one and after the prefix, but not before the first element.
  const uint64_t last = std::max<uint64_t>({parts_.min_items, parts_.prefix.size(), parts_.unique_by_index.size(), 1});
  const auto add = [&](SymbolId symbol, uint64_t contained, std::string seen) {
    if (!IsProductive(symbol)) return;
    Position after;
    after.count = parts_.max_items == UINT64_MAX ? std::min(position.count + 1, last) : position.count + 1;
    after.contained = parts_.max_contains == UINT64_MAX ? std::min(contained, parts_.min_contains) : contained;
    after.needs_comma = true;
    after.seen = std::move(seen);
    if (CanEnd(after)) edges.push_back({symbol, StateOf(after)});
  };
  if (!parts_.unique_values.empty()) {
    for (size_t i = 0; i < parts_.unique_values.size(); ++i) {
      if ((static_cast<uint8_t>(position.seen[i / 8]) >> (i % 8) & 1) != 0) continue;
      if (!parts_.unique_by_index.empty() && !parts_.unique_by_index[position.count][i]) continue;
      std::string seen = position.seen;
      seen[i / 8] = static_cast<char>(seen[i / 8] | 1 << (i % 8));
      add(parts_.unique_values[i], 0, std::move(seen));
    }
    return;
  }
  const Element& element = ElementAt(position.count);
  if (!parts_.has_contains) return add(element.any, 0, "");
  const bool is_bounded = parts_.max_contains != UINT64_MAX;
  if (!is_bounded && position.contained >= parts_.min_contains) return add(element.any, position.contained, "");
  add(is_bounded ? element.outside : element.any, position.contained, "");
  if (position.contained < parts_.max_contains) add(element.inside, position.contained + 1, "");
}

void ArrayRule::AppendEdges(uint32_t state, std::vector<SymbolEdge>& edges) {
  if (state == kEnd) return;
  Position position;
  position.seen.assign((parts_.unique_values.size() + 7) / 8, '\0');
  if (state == 0) {
    if (MayClose(position)) edges.push_back({parts_.empty, kEnd});
    std::vector<SymbolEdge> elements;
    AppendElements(position, elements);
    if (!elements.empty()) edges.push_back({parts_.open, StateOf(position)});
    return;
  }
  position = states_[state];
  if (position.needs_comma) {
    if (MayClose(position)) edges.push_back({parts_.close, kEnd});
    Position next = position;
    next.needs_comma = false;
    std::vector<SymbolEdge> elements;
    AppendElements(next, elements);
    if (!elements.empty()) edges.push_back({parts_.comma, StateOf(next)});
    return;
  }
  AppendElements(position, edges);
}

size_t ArrayRule::memory_bytes() const {
  size_t state_bytes = 0;  // of one; those of a rule have texts of the same size
  if (!states_.empty()) state_bytes = sizeof(Position) + 3 * states_.back().seen.size() + 128;
  return sizeof(*this) + parts_.prefix.size() * sizeof(Element) + parts_.unique_values.size() * sizeof(SymbolId) +
         parts_.unique_by_index.size() * (sizeof(std::vector<bool>) + parts_.unique_values.size() / 8) +
         productive_.size() * sizeof(SymbolId) + states_.size() * state_bytes;
}

}  // namespace vllm
