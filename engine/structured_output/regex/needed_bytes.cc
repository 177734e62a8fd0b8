// Whether an intersection has no text because one operand needs a byte that another one never has. A member of
// RegexStore that regex_store.cc does not define.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

// The bytes that may occur in a text, or more, and those that occur in every text, or fewer.
struct RegexStore::OccurringBytes {
  ByteSet possible, needed;
};

RegexStore::OccurringBytes RegexStore::CombineOccurringBytes(
    RegexId id, const std::unordered_map<RegexId, OccurringBytes>& parts) const {
  const Node& node = nodes_[id];
  OccurringBytes result;
  // Joins or intersects the sets of the operands.
  const auto combine = [&](std::span<const RegexId> operands, bool joins_possible, bool joins_needed) {
    const auto add = [](bool joins, ByteSet& set, const ByteSet& other) {
      if (joins) {
        set |= other;
      } else {
        set &= other;
      }
    };
    result = parts.at(operands[0]);
    for (const RegexId operand : operands.subspan(1)) {
      add(joins_possible, result.possible, parts.at(operand).possible);
      add(joins_needed, result.needed, parts.at(operand).needed);
    }
  };
  switch (node.kind) {
    case Kind::kNothing:
    case Kind::kEmpty:
      break;
    case Kind::kBytes:
      result.possible = sets_[node.a];
      if (result.possible.size() == 1) result.needed = result.possible;
      break;
    case Kind::kConcat:
      combine(std::array{node.a, node.b}, true, true);
      break;
    case Kind::kOr:
      combine(OperandsOf(node), true, false);
      break;
    case Kind::kAnd:
      combine(OperandsOf(node), false, true);
      break;
    case Kind::kRepeat:
      result = parts.at(node.a);
      if (node.b == 0) result.needed = ByteSet();
      break;
    case Kind::kAutomaton:
    case Kind::kNot:
      result.possible = ByteSet::All();
      break;
  }
  return result;
}

bool RegexStore::LacksNeededByte(RegexId id) const {
  constexpr size_t kMaxParts = 20'000;  // more would take longer than the search
  std::unordered_map<RegexId, OccurringBytes> done;
  std::vector<RegexId> pending = {id};
  while (!pending.empty()) {
    if (done.size() + pending.size() > kMaxParts) return false;
    const RegexId current = pending.back();
    const Node& node = nodes_[current];
    const size_t size = pending.size();
    const auto need = [&](RegexId part) {
      if (!done.contains(part)) pending.push_back(part);
    };
    if (!done.contains(current)) {
      if (node.kind == Kind::kOr || node.kind == Kind::kAnd) std::ranges::for_each(OperandsOf(node), need);
      if (node.kind == Kind::kConcat || node.kind == Kind::kRepeat) need(node.a);
      if (node.kind == Kind::kConcat) need(node.b);
    }
    if (pending.size() > size) continue;
    pending.pop_back();
    if (!done.contains(current)) done.emplace(current, CombineOccurringBytes(current, done));
  }
  const OccurringBytes& bytes = done.at(id);
  ByteSet both = bytes.needed;
  both &= bytes.possible;
  return both != bytes.needed;
}

}  // namespace vllm
