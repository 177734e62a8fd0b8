// Expressions made from others by replacing parts. The members of RegexStore that regex_store.cc does not define.
#include <algorithm>

#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

std::optional<std::pair<uint32_t, uint32_t>> RegexStore::CountsOf(RegexId id, RegexId operand) const {
  if (id == kEmpty) return std::pair(0u, 0u);
  if (id == operand) return std::pair(1u, 1u);
  const Node& node = nodes_[id];
  if (node.kind != Kind::kRepeat || node.a != operand) return std::nullopt;
  return std::pair(node.b, node.max);
}

template <typename Function>
RegexId RegexStore::MapRepetitions(RegexId id, const Function& function, std::unordered_map<RegexId, RegexId>& done) {
  if (const auto it = done.find(id); it != done.end()) return it->second;
  const Node node = nodes_[id];
  RegexId result = id;
  if (node.kind == Kind::kConcat) {
    std::vector<RegexId> parts;
    RegexId rest = id;
    for (; nodes_[rest].kind == Kind::kConcat; rest = nodes_[rest].b) {
      parts.push_back(MapRepetitions(nodes_[rest].a, function, done));
    }
    parts.push_back(MapRepetitions(rest, function, done));
    result = Concat(parts);
  } else if (node.kind == Kind::kOr || node.kind == Kind::kAnd) {
    std::vector<RegexId> operands;
    for (uint32_t i = 0; i < node.b; ++i) operands.push_back(MapRepetitions(operands_[node.a + i], function, done));
    result = node.kind == Kind::kOr ? Or(std::move(operands)) : And(std::move(operands));
  } else if (node.kind == Kind::kRepeat) {
    result = function(MapRepetitions(node.a, function, done), node.b, node.max);
  }
  done.emplace(id, result);
  return result;
}

RegexId RegexStore::WithoutCounts(RegexId id) {
  std::unordered_map<RegexId, RegexId> done;
  const auto unlimited = [this](RegexId operand, uint32_t min, uint32_t max) {
    return Repeat(operand, std::min(min, 1u), max == 1 ? 1 : kUnbounded);
  };
  return MapRepetitions(id, unlimited, done);
}

RegexId RegexStore::WithBoundedRepetitions(RegexId id, uint32_t bound) {
  std::unordered_map<RegexId, RegexId> done;
  const auto bounded = [this, bound](RegexId operand, uint32_t min, uint32_t max) {
    return Repeat(operand, min, max == kUnbounded ? std::max(min, bound) : max);
  };
  return MapRepetitions(id, bounded, done);
}

RegexId RegexStore::WithEverythingAtEnd(RegexId id, RegexId tail) {
  if (id == tail) return kEverything;
  const Node node = nodes_[id];
  if (node.kind == Kind::kNot) return Not(WithEverythingAtEnd(node.a, tail));
  if (node.kind == Kind::kOr || node.kind == Kind::kAnd) {
    std::vector<RegexId> operands;
    for (uint32_t i = 0; i < node.b; ++i) operands.push_back(WithEverythingAtEnd(operands_[node.a + i], tail));
    return node.kind == Kind::kOr ? Or(std::move(operands)) : And(std::move(operands));
  }
  if (node.kind != Kind::kConcat) return id;
  std::vector<RegexId> parts;
  RegexId rest = id;
  for (; nodes_[rest].kind == Kind::kConcat; rest = nodes_[rest].b) parts.push_back(nodes_[rest].a);
  if (rest != tail) return id;
  parts.push_back(kEverything);
  return Concat(parts);
}

}  // namespace vllm
