// Whether an expression matches any text. The members of RegexStore that regex_store.cc does not define.
//
// Only intersections and complements need a search, over their derivatives. A search must not use the results of
// earlier ones for the expressions on its way: it would need fewer steps than without them, so the limit would depend
// on them.
#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

void RegexStore::ThrowEmptinessLimit() const {
  throw EmptinessLimitError("the grammar needs too many steps to find out if it has a text (limit " +
                            std::to_string(max_emptiness_steps_) + ")");
}

// One search, depth first or breadth first.
class RegexStore::TextSearch {
 public:
  TextSearch(RegexStore& store, RegexId id, bool is_depth_first) : store_(store), is_depth_first_(is_depth_first) {
    visits_.push_back({id, 0, {}});
    seen_.insert(id);
    pending_.push_back(0);
  }

  // Visits one expression. Returns kUnknown if the search must continue.
  Emptiness Step() {
    if (first_pending_ == pending_.size()) return Emptiness::kNothing;
    if (!is_depth_first_ && first_pending_ == level_end_) {
      level_end_ = pending_.size();
      for (size_t i = first_pending_; i < level_end_ && !IsOverLimit(); ++i) Count(pending_[i]);
    }
    const size_t index = is_depth_first_ ? pending_.back() : pending_[first_pending_++];
    if (is_depth_first_) {
      pending_.pop_back();
      Count(index);
    }
    if (IsOverLimit()) return Emptiness::kLimit;
    const RegexId current = visits_[index].id;
    const std::vector<uint8_t> bytes = std::move(visits_[index].bytes);
    for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte) {
      const RegexId next = store_.Derivative(current, *byte);
      if (next == kNothing || !seen_.insert(next).second) continue;
      if (store_.nodes_[next].nullable || !store_.nodes_[next].may_be_nothing) {
        last_ = index;
        return Emptiness::kSomething;
      }
      pending_.push_back(visits_.size());
      visits_.push_back({next, index, {}});
    }
    return Emptiness::kUnknown;
  }

  // Records the result for other expressions whose own searches would find it as well. If there is no text, these are
  // all that were seen. A search breadth first from an expression on the way to a shortest text sees a part of what
  // this one has seen, counted by whole levels.
  void Record(Emptiness result) {
    if (result == Emptiness::kNothing) {
      for (const Visit& visit : visits_) Record(visit.id, result);
    } else if (result == Emptiness::kSomething && !is_depth_first_) {
      for (size_t i = last_; i != 0; i = visits_[i].parent) Record(visits_[i].id, result);
    }
  }

 private:
  bool IsOverLimit() const { return num_steps_ > store_.max_emptiness_steps_; }
  void Count(size_t index) {
    visits_[index].bytes = store_.FirstBytes(visits_[index].id);
    const Node* node = &store_.nodes_[visits_[index].id];
    if (node->kind == Kind::kNot) node = &store_.nodes_[node->a];
    const bool is_list = node->kind == Kind::kOr || node->kind == Kind::kAnd;
    num_steps_ += (is_list ? size_t{node->b} : 1) * visits_[index].bytes.size();
  }
  void Record(RegexId id, Emptiness result) {
    const Kind kind = store_.nodes_[id].kind;  // others are not searched themselves
    if (kind == Kind::kAnd || kind == Kind::kNot) store_.emptiness_[id] = result;
  }

  struct Visit {
    RegexId id;
    size_t parent;
    std::vector<uint8_t> bytes;  // see FirstBytes; from Count until the visit
  };
  RegexStore& store_;
  const bool is_depth_first_;
  std::vector<Visit> visits_;
  std::unordered_set<RegexId> seen_;
  std::vector<size_t> pending_;
  size_t first_pending_ = 0;  // breadth first
  size_t level_end_ = 0;      // of pending_: the end of the expressions that are as many bytes away
  size_t num_steps_ = 0;
  size_t last_ = 0;  // the visit before the one that ended the search
};

bool RegexStore::HasNoTextWithoutCounts(RegexId id) {
  // More texts and far fewer derivatives.
  const RegexId relaxed = WithoutCounts(id);
  if (relaxed == id || nodes_[relaxed].kind != Kind::kAnd) return relaxed == kNothing;
  return SearchText(relaxed, /*may_relax=*/false) == Emptiness::kNothing;
}

RegexStore::Emptiness RegexStore::SearchText(RegexId id, bool may_relax) {
  // After these many visits, it is tried if a byte is missing, and if an expression with more texts has none.
  constexpr size_t kVisitsBeforeBytes = 16;
  constexpr size_t kVisitsBeforeRelaxing = 500;
  if (nodes_[id].nullable) return Emptiness::kSomething;
  // Every number may begin with any digit, but after one, it is known how many more make a multiple of a large number.
  for (const uint8_t byte : FirstBytes(id)) {
    const RegexId next = Derivative(id, byte);
    if (next != kNothing && IsTextAhead(next)) return Emptiness::kSomething;
  }
  // By turns depth first, which finds a long text, and breadth first, which finds a short one even if depth first is
  // lost in a part where there are many expressions and no text.
  TextSearch deep(*this, id, /*is_depth_first=*/true);
  TextSearch wide(*this, id, /*is_depth_first=*/false);
  bool is_over[2] = {false, false};
  for (size_t i = 0; !is_over[0] || !is_over[1]; ++i) {
    if (i == 2 * kVisitsBeforeBytes && LacksNeededByte(id)) return Emptiness::kNothing;
    if (i == 2 * kVisitsBeforeRelaxing && may_relax && HasNoTextWithoutCounts(id)) return Emptiness::kNothing;
    if (is_over[i % 2]) continue;
    TextSearch& search = i % 2 == 0 ? deep : wide;
    const Emptiness result = search.Step();
    is_over[i % 2] = result == Emptiness::kLimit;
    if (result == Emptiness::kUnknown || result == Emptiness::kLimit) continue;
    search.Record(result);
    return result;
  }
  return Emptiness::kLimit;
}

RegexId RegexStore::NearerText(RegexId id) {
  // A code point may need a few bytes until fewer bytes are left.
  constexpr size_t kMaxVisits = 8;
  std::array<RegexId, kMaxVisits> visits{id};
  size_t num_visits = 1;
  for (size_t i = 0; i < num_visits; ++i) {
    for (const uint8_t byte : FirstBytes(visits[i])) {
      const RegexId next = Derivative(visits[i], byte);
      if (next == kNothing) continue;
      if (nodes_[next].nullable || !nodes_[next].may_be_nothing) return kEmpty;
      if (nodes_[next].min_bytes < nodes_[id].min_bytes) return next;
      const auto end = visits.begin() + static_cast<std::ptrdiff_t>(num_visits);
      if (num_visits < kMaxVisits && std::find(visits.begin(), end, next) == end) visits[num_visits++] = next;
    }
  }
  return kNothing;
}

bool RegexStore::IsTextAhead(RegexId id) {
  constexpr uint32_t kMaxBytes = 16'384;
  if (nodes_[id].min_bytes > kMaxBytes) return false;
  std::vector<RegexId> path;
  RegexId next = id;
  for (; next != kEmpty && next != kNothing && text_ahead_[next] == 0; next = NearerText(next)) path.push_back(next);
  const bool is_text_ahead = next == kEmpty || (next != kNothing && text_ahead_[next] == 2);
  for (const RegexId on_path : path) text_ahead_[on_path] = is_text_ahead ? 2 : 1;
  return is_text_ahead;
}

RegexStore::Emptiness RegexStore::FindEmptiness(RegexId id) {
  const Node node = nodes_[id];
  if (!node.may_be_nothing) return id == kNothing ? Emptiness::kNothing : Emptiness::kSomething;
  if (emptiness_[id] != Emptiness::kUnknown) return emptiness_[id];
  Emptiness result = Emptiness::kUnknown;
  // The operands are not in the order of the expression, so all of them are looked at unless the result is certain.
  const auto combine = [&](RegexId operand, Emptiness decisive) {
    const Emptiness part = FindEmptiness(operand);
    if (part == decisive || result == Emptiness::kUnknown || part == Emptiness::kLimit) result = part;
    return part == decisive;
  };
  switch (node.kind) {
    case Kind::kConcat: {
      RegexId rest = id;
      bool is_certain = false;
      for (; !is_certain && nodes_[rest].kind == Kind::kConcat; rest = nodes_[rest].b) {
        is_certain = combine(nodes_[rest].a, Emptiness::kNothing);
      }
      if (!is_certain) combine(rest, Emptiness::kNothing);
      break;
    }
    case Kind::kOr:
      for (uint32_t i = 0; i < node.b && result != Emptiness::kSomething; ++i) {
        if (!nodes_[operands_[node.a + i]].may_be_nothing) result = Emptiness::kSomething;
      }
      for (uint32_t i = 0; i < node.b && result != Emptiness::kSomething; ++i) {
        combine(operands_[node.a + i], Emptiness::kSomething);
      }
      break;
    case Kind::kRepeat:
      combine(node.a, Emptiness::kNothing);
      break;
    default:
      result = IsTextAhead(id) ? Emptiness::kSomething : SearchText(id, /*may_relax=*/true);
      break;
  }
  emptiness_[id] = result;
  return result;
}

bool RegexStore::IsNothing(RegexId id) {
  const Emptiness result = FindEmptiness(id);
  if (result == Emptiness::kLimit) ThrowEmptinessLimit();
  return result == Emptiness::kNothing;
}

bool RegexStore::CanContinue(RegexId id) {
  if (id == kEmpty) return false;
  if (!nodes_[id].nullable) return true;
  bool is_limit = false;
  for (const uint8_t byte : FirstBytes(id)) {
    const Emptiness rest = FindEmptiness(Derivative(id, byte));
    if (rest == Emptiness::kSomething) return true;
    is_limit = is_limit || rest == Emptiness::kLimit;
  }
  if (is_limit) ThrowEmptinessLimit();
  return false;
}

}  // namespace vllm
