#include "engine/structured_output/regex/regex_store.h"

#include <algorithm>

namespace vllm {
namespace {

[[noreturn]] void ThrowLimit(const char* what, size_t limit) {
  throw GrammarLimitError("the grammar needs too many " + std::string(what) + " (limit " + std::to_string(limit) + ")");
}

uint32_t Saturated(uint64_t value) { return static_cast<uint32_t>(std::min<uint64_t>(UINT32_MAX, value)); }

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

}  // namespace

RegexStore::RegexStore() : ids_(64, Hash{this}, Equal{this}) {
  Intern({.kind = Kind::kNothing, .min_bytes = UINT32_MAX});
  Intern({.kind = Kind::kEmpty, .nullable = true});
  Intern({.kind = Kind::kNot, .nullable = true, .a = kNothing});
}

size_t RegexStore::HashOf(RegexId id) const {
  const Node& node = nodes_[id];
  uint64_t hash = Mix(static_cast<uint64_t>(node.kind), node.max);
  if (node.kind == Kind::kBytes) {
    for (const uint64_t word : sets_[node.a].words()) hash = Mix(hash, word);
  } else if (node.kind == Kind::kOr || node.kind == Kind::kAnd) {
    for (const RegexId operand : OperandsOf(node)) hash = Mix(hash, operand);
  } else {
    hash = Mix(Mix(hash, node.a), node.b);
  }
  return static_cast<size_t>(hash);
}

bool RegexStore::AreEqual(RegexId x, RegexId y) const {
  const Node& a = nodes_[x];
  const Node& b = nodes_[y];
  if (a.kind != b.kind || a.max != b.max) return false;
  if (a.kind == Kind::kBytes) return sets_[a.a] == sets_[b.a];
  if (a.kind != Kind::kOr && a.kind != Kind::kAnd) return a.a == b.a && a.b == b.b;
  return std::ranges::equal(OperandsOf(a), OperandsOf(b));
}

RegexId RegexStore::Intern(Node node) {
  if (nodes_.size() >= kMaxNodes) ThrowLimit("parts of regular expressions", kMaxNodes);
  if (node.depth > kMaxDepth) ThrowLimit("levels of regular expressions", kMaxDepth);
  const auto id = static_cast<RegexId>(nodes_.size());
  nodes_.push_back(node);
  try {
    emptiness_.push_back(Emptiness::kUnknown);
    text_ahead_.push_back(0);
    const auto [it, inserted] = ids_.insert(id);
    if (inserted) return id;
    nodes_.pop_back();
    emptiness_.pop_back();
    text_ahead_.pop_back();
    return *it;
  } catch (...) {
    emptiness_.resize(id);
    text_ahead_.resize(id);
    nodes_.pop_back();
    throw;
  }
}

RegexId RegexStore::InternList(Kind kind, const std::vector<RegexId>& operands) {
  if (operands.size() > kMaxOperands) ThrowLimit("alternatives of a regular expression", kMaxOperands);
  if (operands_.size() + operands.size() > kMaxAllOperands) {
    ThrowLimit("alternatives of all regular expressions", kMaxAllOperands);
  }
  Node node{.kind = kind, .nullable = kind == Kind::kAnd, .may_be_nothing = kind == Kind::kAnd};
  node.a = static_cast<uint32_t>(operands_.size());
  node.b = static_cast<uint32_t>(operands.size());
  for (const RegexId operand : operands) {
    const Node& part = nodes_[operand];
    node.nullable = kind == Kind::kAnd ? node.nullable && part.nullable : node.nullable || part.nullable;
    node.may_be_nothing = node.may_be_nothing || part.may_be_nothing;
    node.depth = std::max(node.depth, static_cast<uint16_t>(part.depth + 1));
    const bool is_first = operand == operands.front();
    node.min_bytes = is_first             ? part.min_bytes
                     : kind == Kind::kAnd ? std::max(node.min_bytes, part.min_bytes)
                                          : std::min(node.min_bytes, part.min_bytes);
  }
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  const size_t size = nodes_.size();
  const RegexId id = Intern(node);
  if (nodes_.size() == size) operands_.resize(node.a);
  return id;
}

void RegexStore::RefineClasses(const ByteSet& set) {
  std::array<int, 512> renumbered;
  renumbered.fill(-1);
  int next = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    int& number = renumbered[classes_[byte] * 2u + (set.Contains(static_cast<uint8_t>(byte)) ? 1 : 0)];
    if (number < 0) {
      number = next++;
      representatives_.Add(static_cast<uint8_t>(byte));
    }
    classes_[byte] = static_cast<uint8_t>(number);
  }
  num_classes_ = static_cast<size_t>(next);
}

RegexId RegexStore::Bytes(const ByteSet& set) {
  if (set.empty()) return kNothing;
  sets_.push_back(set);
  const size_t size = nodes_.size();
  const RegexId id = Intern({.kind = Kind::kBytes, .min_bytes = 1, .a = static_cast<uint32_t>(sets_.size() - 1)});
  if (nodes_.size() == size) {
    sets_.pop_back();
  } else {
    RefineClasses(set);
  }
  return id;
}

RegexId RegexStore::Literal(std::string_view bytes) {
  RegexId id = kEmpty;
  for (size_t i = bytes.size(); i-- > 0;) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    id = ConcatPair(Bytes(ByteSet::Range(byte, byte)), id);
  }
  return id;
}

RegexId RegexStore::Literals(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  // A trie from the last text to the first: open[d] has the alternatives after the first d bytes of the last text.
  std::vector<std::vector<RegexId>> open(1);
  std::string_view path;
  const auto close = [&](size_t depth) {
    for (; open.size() > depth + 1; open.pop_back()) {
      const auto byte = static_cast<uint8_t>(path[open.size() - 2]);
      const RegexId rest = Or(std::move(open.back()));
      open[open.size() - 2].push_back(ConcatPair(Bytes(ByteSet::Range(byte, byte)), rest));
    }
  };
  for (const std::string& text : texts) {
    close(static_cast<size_t>(std::mismatch(text.begin(), text.end(), path.begin(), path.end()).first - text.begin()));
    path = text;
    open.resize(text.size() + 1);
    open.back().push_back(kEmpty);
  }
  close(0);
  return Or(std::move(open[0]));
}

RegexId RegexStore::Automaton(std::shared_ptr<const ByteAutomaton> automaton) {
  automaton_classes_.push_back(automaton->ByteClasses());
  for (const ByteSet& set : automaton_classes_.back()) RefineClasses(set);
  automata_.push_back(std::move(automaton));
  return AutomatonState(static_cast<uint32_t>(automata_.size() - 1), 0);
}

RegexId RegexStore::AutomatonState(uint32_t index, int32_t state) {
  if (state < 0) return kNothing;
  return Intern({.kind = Kind::kAutomaton,
                 .nullable = automata_[index]->IsFinal(state),
                 .min_bytes = automata_[index]->MinBytes(state),
                 .a = index,
                 .b = static_cast<uint32_t>(state)});
}

RegexId RegexStore::Concat(RegexId first, RegexId second) {
  if (nodes_[first].kind != Kind::kConcat) return ConcatPair(first, second);
  std::vector<RegexId> parts;
  RegexId rest = first;
  for (; nodes_[rest].kind == Kind::kConcat; rest = nodes_[rest].b) parts.push_back(nodes_[rest].a);
  parts.push_back(rest);
  RegexId id = second;
  for (size_t i = parts.size(); i-- > 0;) id = ConcatPair(parts[i], id);
  return id;
}

RegexId RegexStore::Concat(std::span<const RegexId> parts) {
  RegexId id = kEmpty;
  for (size_t i = parts.size(); i-- > 0;) id = Concat(parts[i], id);
  return id;
}

// REQUIRES: `first` is no concatenation.
RegexId RegexStore::ConcatPair(RegexId first, RegexId second) {
  if (first == kNothing || second == kNothing) return kNothing;
  if (first == kEmpty) return second;
  if (second == kEmpty) return first;
  // X{a,b}X{c,d} = X{a+c,b+d}
  const bool is_pair = nodes_[second].kind == Kind::kConcat;
  const RegexId head = is_pair ? nodes_[second].a : second;
  const auto counts = [&](RegexId id, RegexId operand) -> std::pair<uint32_t, uint32_t> {
    if (id == operand) return {1, 1};
    const Node& node = nodes_[id];
    return node.kind == Kind::kRepeat && node.a == operand ? std::pair(node.b, node.max) : std::pair(1u, 0u);
  };
  const RegexId operand = nodes_[first].kind == Kind::kRepeat  ? nodes_[first].a
                          : nodes_[head].kind == Kind::kRepeat ? nodes_[head].a
                                                               : first;
  const auto [a, b] = counts(first, operand);
  const auto [c, d] = counts(head, operand);
  if (a <= b && c <= d &&
      (first == head || nodes_[first].kind == Kind::kRepeat || nodes_[head].kind == Kind::kRepeat)) {
    const uint32_t max = b == kUnbounded || d == kUnbounded ? kUnbounded : b + d;
    const RegexId merged = Repeat(operand, a + c, max);
    return is_pair ? ConcatPair(merged, nodes_[second].b) : merged;
  }
  const Node& x = nodes_[first];
  const Node& y = nodes_[second];
  Node node{.kind = Kind::kConcat,
            .nullable = x.nullable && y.nullable,
            .may_be_nothing = x.may_be_nothing || y.may_be_nothing,
            .depth = static_cast<uint16_t>(x.depth + 1),
            .min_bytes = Saturated(uint64_t{x.min_bytes} + y.min_bytes),
            .a = first,
            .b = second};
  // Derivative follows a chain of concatenations in a loop.
  if (x.nullable) node.depth = std::max(node.depth, static_cast<uint16_t>(y.depth + (is_pair ? 0 : 1)));
  return Intern(node);
}

void RegexStore::Flatten(Kind kind, std::vector<RegexId>& operands) {
  std::vector<RegexId> flat;
  ByteSet set = kind == Kind::kOr ? ByteSet() : ByteSet::All();
  size_t num_sets = 0;
  RegexId last_set = kNothing;
  const auto add = [&](RegexId id) {
    if (nodes_[id].kind == Kind::kBytes) {
      const ByteSet& other = sets_[nodes_[id].a];
      if (kind == Kind::kOr) {
        set |= other;
      } else {
        set &= other;
      }
      last_set = id;
      ++num_sets;
    } else {
      flat.push_back(id);
    }
  };
  for (const RegexId id : operands) {
    if (nodes_[id].kind == kind) {
      for (const RegexId operand : OperandsOf(nodes_[id])) add(operand);
    } else {
      add(id);
    }
  }
  if (num_sets > 0) flat.push_back(num_sets == 1 ? last_set : Bytes(set));
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  operands = std::move(flat);
}

RegexId RegexStore::Or(std::vector<RegexId> operands) {
  Flatten(Kind::kOr, operands);
  std::erase(operands, kNothing);
  bool nullable = false;
  for (const RegexId id : operands) {
    if (id == kEverything) return kEverything;
    if (id != kEmpty) nullable = nullable || nodes_[id].nullable;
    if (nodes_[id].kind == Kind::kNot && std::binary_search(operands.begin(), operands.end(), nodes_[id].a)) {
      return kEverything;
    }
  }
  if (nullable) std::erase(operands, kEmpty);
  if (operands.empty()) return kNothing;
  if (operands.size() == 1) return operands[0];
  if (operands.size() == 2 && operands[0] == kEmpty) return Repeat(operands[1], 0, 1);
  return InternList(Kind::kOr, operands);
}

RegexId RegexStore::And(std::vector<RegexId> operands) {
  Flatten(Kind::kAnd, operands);
  std::erase(operands, kEverything);
  bool nullable = true;
  bool has_empty = false;
  for (const RegexId id : operands) {
    if (id == kNothing) return kNothing;
    has_empty = has_empty || id == kEmpty;
    nullable = nullable && nodes_[id].nullable;
    if (nodes_[id].kind == Kind::kNot && std::binary_search(operands.begin(), operands.end(), nodes_[id].a)) {
      return kNothing;
    }
  }
  if (has_empty) return nullable ? kEmpty : kNothing;
  if (operands.empty()) return kEverything;
  if (operands.size() == 1) return operands[0];
  return InternList(Kind::kAnd, operands);
}

RegexId RegexStore::Not(RegexId operand) {
  const Node& node = nodes_[operand];
  if (node.kind == Kind::kNot) return node.a;
  return Intern({.kind = Kind::kNot,
                 .nullable = !node.nullable,
                 .may_be_nothing = true,
                 .depth = static_cast<uint16_t>(node.depth + 1),
                 .min_bytes = node.nullable ? 1u : 0u,
                 .a = operand});
}

RegexId RegexStore::Repeat(RegexId operand, uint32_t min, uint32_t max) {
  const Node& node = nodes_[operand];
  if (max == 0 || operand == kEmpty) return kEmpty;
  if (operand == kNothing) return min == 0 ? kEmpty : kNothing;
  if (min == 1 && max == 1) return operand;
  if (operand == kEverything) return kEverything;
  if (node.nullable) min = 0;
  if (min == 0 && max == 1 && node.nullable) return operand;
  if (node.kind == Kind::kRepeat && node.b <= 1) {
    // X{a,b}{c,d} = X{ac,bd} if a is 0 or 1, because the counts between are reached as well.
    const uint64_t low = uint64_t{node.b} * min;
    const uint64_t high = node.max == kUnbounded || max == kUnbounded ? kUnbounded : uint64_t{node.max} * max;
    if (high != kUnbounded && high > kMaxRepeat) ThrowLimit("repetitions", kMaxRepeat);
    return Repeat(node.a, static_cast<uint32_t>(low), static_cast<uint32_t>(high));
  }
  if (min > kMaxRepeat || (max != kUnbounded && max > kMaxRepeat)) ThrowLimit("repetitions", kMaxRepeat);
  return Intern({.kind = Kind::kRepeat,
                 .nullable = min == 0,
                 .may_be_nothing = min > 0 && node.may_be_nothing,
                 .depth = static_cast<uint16_t>(node.depth + 1),
                 .min_bytes = Saturated(uint64_t{node.min_bytes} * min),
                 .a = operand,
                 .b = min,
                 .max = max});
}

RegexId RegexStore::Derivative(RegexId id, uint8_t byte) {
  const Node node = nodes_[id];
  switch (node.kind) {
    case Kind::kNothing:
    case Kind::kEmpty:
      return kNothing;
    case Kind::kBytes:
      return sets_[node.a].Contains(byte) ? kEmpty : kNothing;
    case Kind::kAutomaton:
      return AutomatonState(node.a, automata_[node.a]->Next(static_cast<int32_t>(node.b), byte));
    case Kind::kConcat:
      if (nodes_[node.a].kind != Kind::kBytes) break;
      return sets_[nodes_[node.a].a].Contains(byte) ? node.b : kNothing;
    default:
      break;
  }
  const uint64_t key = uint64_t{id} << 8 | byte;
  if (const auto it = derivatives_.find(key); it != derivatives_.end()) return it->second;
  const RegexId derivative = ComputeDerivative(node, id, byte);
  derivatives_.emplace(key, derivative);
  return derivative;
}

RegexId RegexStore::ComputeDerivative(const Node& node, RegexId id, uint8_t byte) {
  const uint64_t num_steps = node.kind == Kind::kOr || node.kind == Kind::kAnd ? node.b : 1;
  if (num_steps > building_steps_left_) ThrowLimit("steps to be built", kMaxBuildingSteps);
  if (building_steps_left_ != UINT64_MAX) building_steps_left_ -= num_steps;
  switch (node.kind) {
    case Kind::kConcat: {
      std::vector<RegexId> alternatives;
      RegexId rest = id;
      for (; nodes_[rest].kind == Kind::kConcat; rest = nodes_[rest].b) {
        const RegexId first = nodes_[rest].a;
        const RegexId second = nodes_[rest].b;
        alternatives.push_back(Concat(Derivative(first, byte), second));
        if (!nodes_[first].nullable) return Or(std::move(alternatives));
      }
      alternatives.push_back(Derivative(rest, byte));
      return Or(std::move(alternatives));
    }
    case Kind::kOr:
    case Kind::kAnd: {
      std::vector<RegexId> derivatives;
      derivatives.reserve(node.b);
      for (uint32_t i = 0; i < node.b; ++i) {
        const RegexId derivative = Derivative(operands_[node.a + i], byte);
        if (node.kind == Kind::kAnd && derivative == kNothing) return kNothing;
        if (derivative != kNothing) derivatives.push_back(derivative);
      }
      return node.kind == Kind::kOr ? Or(std::move(derivatives)) : And(std::move(derivatives));
    }
    case Kind::kNot:
      return Not(Derivative(node.a, byte));
    case Kind::kRepeat: {
      const RegexId rest =
          Repeat(node.a, node.b == 0 ? 0 : node.b - 1, node.max == kUnbounded ? kUnbounded : node.max - 1);
      return Concat(Derivative(node.a, byte), rest);
    }
    default:
      return kNothing;
  }
}

bool RegexStore::Matches(RegexId id, std::string_view text) {
  for (const char c : text) id = Derivative(id, static_cast<uint8_t>(c));
  return nodes_[id].nullable;
}

void RegexStore::Truncate(size_t size) {
  derivatives_.clear();
  for (size_t id = size; id < nodes_.size(); ++id) ids_.erase(static_cast<RegexId>(id));
  size_t num_operands = operands_.size(), num_sets = sets_.size();
  for (size_t id = nodes_.size(); id-- > size;) {
    const Node& node = nodes_[id];
    if (node.kind == Kind::kOr || node.kind == Kind::kAnd) num_operands = node.a;
    if (node.kind == Kind::kBytes) num_sets = node.a;
  }
  operands_.resize(num_operands);
  sets_.resize(num_sets);
  nodes_.resize(size);
  emptiness_.resize(size);
  text_ahead_.resize(size);
}

}  // namespace vllm
