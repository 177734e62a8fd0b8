#include "engine/structured_output/json_schema/object_rule.h"

#include <algorithm>
#include <utility>

namespace vllm {

ObjectRule::ObjectRule(Parts parts) : parts_(std::move(parts)) { states_.resize(2); }

bool ObjectRule::Restrict(const std::vector<bool>& productive) {
  const size_t size = parts_.members.size();
  is_possible_.assign(size, false);
  is_other_possible_.assign(parts_.others.size(), false);
  required_after_.assign(size + 1, 0);
  possible_after_.assign(size + 1, 0);
  for (size_t i = size; i-- > 0;) {
    is_possible_[i] = productive[parts_.members[i].value];
    required_after_[i] = required_after_[i + 1] + (parts_.members[i].is_required ? 1 : 0);
    possible_after_[i] = possible_after_[i + 1] + (is_possible_[i] ? 1 : 0);
    if (parts_.members[i].is_required && !is_possible_[i]) return false;
  }
  for (size_t i = 0; i < parts_.others.size(); ++i) is_other_possible_[i] = productive[parts_.others[i].value];
  states_.resize(2);
  ids_.clear();
  Position start;
  start.needs = parts_.needs;
  if (parts_.any_order) start.seen.assign((size + 7) / 8, '\0');
  return CanEnd(start);
}

void ObjectRule::AppendSymbols(std::vector<SymbolId>& symbols) const {
  for (const Member& member : parts_.members) symbols.push_back(member.value);
  for (const Member& member : parts_.others) symbols.push_back(member.value);
}

bool ObjectRule::IsSeen(const Position& position, size_t index) const {
  return (static_cast<uint8_t>(position.seen[index / 8]) >> (index % 8) & 1) != 0;
}

uint64_t ObjectRule::NumRequiredAfter(const Position& position) const {
  if (!parts_.any_order) return required_after_[position.next];
  uint64_t num_required = 0;
  for (size_t i = 0; i < parts_.members.size(); ++i) {
    num_required += parts_.members[i].is_required && !IsSeen(position, i) ? 1 : 0;
  }
  return num_required;
}

uint64_t ObjectRule::NeedsAfter(const Position& position, bool only_required) const {
  uint64_t needs = 0;
  for (size_t i = parts_.any_order ? 0 : position.next; i < parts_.members.size(); ++i) {
    if (parts_.any_order && IsSeen(position, i)) continue;
    if (is_possible_[i] && (parts_.members[i].is_required || !only_required)) needs |= parts_.members[i].needs;
  }
  for (size_t i = 0; i < parts_.others.size() && !only_required; ++i) {
    if (is_other_possible_[i]) needs |= parts_.others[i].needs;
  }
  return needs;
}

bool ObjectRule::CanEnd(const Position& position) const {
  uint64_t num_more = NumRequiredAfter(position);
  if (position.needs != 0) {
    if ((position.needs & ~NeedsAfter(position, /*only_required=*/false)) != 0) return false;
    if ((position.needs & ~NeedsAfter(position, /*only_required=*/true)) != 0) ++num_more;
  }
  if (position.count + num_more > parts_.max_properties) return false;
  uint64_t num_possible = parts_.any_order ? possible_after_[0] - position.next : possible_after_[position.next];
  const bool has_others = std::ranges::find(is_other_possible_, true) != is_other_possible_.end();
  if (has_others && !position.has_others) ++num_possible;
  return position.count + num_possible >= parts_.min_properties;
}

bool ObjectRule::MayClose(const Position& position) const {
  return position.needs == 0 && position.count >= parts_.min_properties && NumRequiredAfter(position) == 0;
}

uint32_t ObjectRule::StateOf(const Position& position, SymbolId value) {
  std::string key = std::to_string(position.next) + "," + std::to_string(position.count) + "," +
                    (position.has_others ? "o" : "-") + (position.is_first ? "f" : "-") + std::to_string(value) + "," +
                    std::to_string(position.needs) + ",";
  key += position.seen;
  const auto [it, inserted] = ids_.try_emplace(std::move(key), static_cast<uint32_t>(states_.size()));
  if (inserted) states_.push_back({position, value});
  return it->second;
}

void ObjectRule::AppendMembers(const Position& position, std::vector<SymbolEdge>& edges) {
  // Counting stops where it no longer matters.
  const uint64_t bound = parts_.max_properties == UINT64_MAX ? parts_.min_properties : parts_.max_properties;
  const auto add = [&](const Member& member, Position after) {
    after.count = std::min(after.count, bound);
    after.is_first = false;
    after.needs &= ~member.needs;
    if (!CanEnd(after)) return;
    edges.push_back({position.is_first ? member.first_key : member.next_key, StateOf(after, member.value)});
  };
  for (size_t i = parts_.any_order ? 0 : position.next; i < parts_.members.size(); ++i) {
    if (parts_.any_order && IsSeen(position, i)) continue;
    if (is_possible_[i] && position.count < parts_.max_properties) {
      Position after = position;
      ++after.count;
      if (parts_.any_order) {
        after.next += 1;
        after.seen[i / 8] = static_cast<char>(after.seen[i / 8] | 1 << (i % 8));
      } else {
        after.next = static_cast<uint32_t>(i + 1);
      }
      add(parts_.members[i], std::move(after));
    }
    if (!parts_.any_order && parts_.members[i].is_required) return;  // cannot be skipped
  }
  for (size_t i = 0; i < parts_.others.size(); ++i) {
    if (!is_other_possible_[i]) continue;
    Position after = position;
    if (!parts_.any_order) after.next = static_cast<uint32_t>(parts_.members.size());
    // Another key may be equal to one before it, so it counts only towards the upper bound, except for the first.
    if (parts_.max_properties != UINT64_MAX) {
      if (position.count == parts_.max_properties) continue;
      ++after.count;
    } else if (!position.has_others) {
      ++after.count;
    }
    after.has_others = true;
    add(parts_.others[i], std::move(after));
  }
}

void ObjectRule::AppendEdges(uint32_t state, std::vector<SymbolEdge>& edges) {
  if (state == kEnd) return;
  if (state == 0) {
    Position start;
    start.needs = parts_.needs;
    if (parts_.any_order) start.seen.assign((parts_.members.size() + 7) / 8, '\0');
    if (MayClose(start)) edges.push_back({parts_.empty, kEnd});
    AppendMembers(start, edges);
    return;
  }
  const State current = states_[state];
  if (current.value != kNoValue) {
    edges.push_back({current.value, StateOf(current.position, kNoValue)});
    return;
  }
  if (MayClose(current.position)) edges.push_back({parts_.close, kEnd});
  AppendMembers(current.position, edges);
}

size_t ObjectRule::memory_bytes() const {
  size_t state_bytes = 0;  // of one; those of a rule have texts of the same size
  if (!states_.empty()) state_bytes = sizeof(State) + 3 * states_.back().position.seen.size() + 128;
  return sizeof(*this) + (parts_.members.size() + parts_.others.size()) * (sizeof(Member) + 16) +
         states_.size() * state_bytes;
}

}  // namespace vllm
