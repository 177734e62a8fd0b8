// RegexStore: regular expressions over bytes, with intersection and complement, stored once each, so that equal
// expressions have equal ids. Matching is by Brzozowski derivatives (Owens, Reppy, Turon: Regular-expression
// derivatives reexamined, 2009): the derivative of an expression by a byte matches the rest of the texts that begin
// with this byte. Owned by a Grammar; one thread at a time.
//
// Invariant 1: operands that cannot change the result are left out, so an expression without kAnd, kNot and kOr of
// these matches no text only if it is kNothing. Invariant 2: recursion is over depth(), which is at most kMaxDepth. A
// concatenation adds to the depth of its first operand only, so the length of a text does not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/structured_output/regex/byte_automaton.h"
#include "engine/structured_output/regex/byte_partition.h"
#include "engine/structured_output/regex/byte_set.h"

namespace vllm {

using RegexId = uint32_t;

// An expression or grammar that exceeds a limit. what() names the limit.
class GrammarLimitError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// It takes too many steps to find out if an expression matches any text. Unlike other limits, this one takes long to
// reach, so callers that try many texts should stop.
class EmptinessLimitError : public GrammarLimitError {
 public:
  using GrammarLimitError::GrammarLimitError;
};

class RegexStore {
 public:
  static constexpr RegexId kNothing = 0;     // matches no text
  static constexpr RegexId kEmpty = 1;       // matches the empty text
  static constexpr RegexId kEverything = 2;  // matches every sequence of bytes
  static constexpr uint32_t kUnbounded = UINT32_MAX;

  // Limits. A function that would exceed one throws GrammarLimitError.
  static constexpr size_t kMaxNodes = size_t{1} << 22;
  static constexpr size_t kMaxDepth = 1000;
  static constexpr size_t kMaxOperands = size_t{1} << 16;     // of one kOr or kAnd
  static constexpr size_t kMaxAllOperands = size_t{1} << 25;  // of all kOr and kAnd together
  static constexpr uint32_t kMaxRepeat = uint32_t{1} << 24;
  // Of one search for a text: the operands whose derivatives are needed.
  static constexpr size_t kMaxEmptinessSteps = 1'000'000;
  // The same while texts are matched, which must not wait long.
  static constexpr size_t kMaxMatchingEmptinessSteps = 500'000;
  // The operands whose derivatives are needed until FinishBuilding.
  static constexpr uint64_t kMaxBuildingSteps = 20'000'000;

  RegexStore();
  RegexStore(const RegexStore&) = delete;
  RegexStore& operator=(const RegexStore&) = delete;

  RegexId Bytes(const ByteSet& set);
  RegexId Literal(std::string_view bytes);
  // The texts of the list, which may be long. Common beginnings are stored once.
  RegexId Literals(std::vector<std::string> texts);
  RegexId Automaton(std::shared_ptr<const ByteAutomaton> automaton);
  RegexId Concat(RegexId first, RegexId second);
  RegexId Concat(std::span<const RegexId> parts);
  RegexId Or(std::vector<RegexId> operands);
  RegexId And(std::vector<RegexId> operands);
  RegexId Not(RegexId operand);
  // REQUIRES: min <= max.
  RegexId Repeat(RegexId operand, uint32_t min, uint32_t max);
  RegexId Optional(RegexId operand) { return Repeat(operand, 0, 1); }
  RegexId Star(RegexId operand) { return Repeat(operand, 0, kUnbounded); }

  // Returns the counts of the repetition if the expression is `operand` repeated, or repeated once or never.
  std::optional<std::pair<uint32_t, uint32_t>> CountsOf(RegexId id, RegexId operand) const;
  // Replaces unlimited repetitions outside complements by at most `max` of the operand, or the least that is allowed.
  // So it removes texts.
  RegexId WithBoundedRepetitions(RegexId id, uint32_t max);
  // Replaces `tail` at the end of sequences by kEverything. If `tail` is Star(x), no text of x is the beginning of
  // another one, and all sequences are sequences of texts of x, then the result matches the same texts among those of
  // `tail`. It needs fewer derivatives, because what follows no longer matters.
  RegexId WithEverythingAtEnd(RegexId id, RegexId tail);

  bool MatchesEmpty(RegexId id) const { return nodes_[id].nullable; }
  // Changes the limits of steps. Called when the expressions of a grammar are complete and texts are matched.
  void FinishBuilding() {
    building_steps_left_ = UINT64_MAX;
    max_emptiness_steps_ = kMaxMatchingEmptinessSteps;
  }
  // For tests.
  void LimitSteps(uint64_t num_steps) { building_steps_left_ = num_steps; }

  // Returns true if the expression matches no text at all. The result, or the failure, depends on the expression only,
  // not on what was found out before. Throws EmptinessLimitError.
  bool IsNothing(RegexId id);
  // Returns true if the expression matches a text of at least one byte. REQUIRES: not IsNothing(id). Throws
  // EmptinessLimitError.
  bool CanContinue(RegexId id);
  RegexId Derivative(RegexId id, uint8_t byte);
  // Splits groups until all bytes of each have the same derivative. Much faster than to compute the derivatives.
  void SplitByDerivative(RegexId id, BytePartition& partition);
  // For tests and for short texts; equal to the derivatives by all bytes in turn.
  bool Matches(RegexId id, std::string_view text);

  // Bytes of equal class have equal derivatives for all expressions that were made so far and for those that result
  // from them. At most 256 classes, numbered from 0.
  const std::array<uint8_t, 256>& byte_classes() const { return classes_; }
  size_t num_byte_classes() const { return num_classes_; }
  // The smallest byte of each class.
  const ByteSet& class_representatives() const { return representatives_; }

  size_t size() const { return nodes_.size(); }
  // Returns about how much memory the expressions and their derivatives need.
  size_t memory_bytes() const {
    return nodes_.size() * (sizeof(Node) + 56) + operands_.size() * sizeof(RegexId) + sets_.size() * sizeof(ByteSet) +
           derivatives_.size() * 40;
  }
  // Forgets the expressions with ids of at least `size`. REQUIRES: size is an earlier value of size().
  void Truncate(size_t size);

 private:
  enum class Kind : uint8_t { kNothing, kEmpty, kBytes, kAutomaton, kConcat, kOr, kAnd, kNot, kRepeat };
  struct Node {
    Kind kind = Kind::kNothing;
    bool nullable = false;        // matches the empty text
    bool may_be_nothing = false;  // matches no text, perhaps: contains kAnd or kNot
    uint16_t depth = 1;
    uint32_t min_bytes = 0;  // no text is shorter; UINT32_MAX at most
    // kBytes: index of the set. kAutomaton: index, state. kConcat: operands. kOr, kAnd: range of operands_. kNot: the
    // operand. kRepeat: the operand, and the counts.
    uint32_t a = 0, b = 0, max = 0;
  };
  struct Hash {
    const RegexStore* store;
    size_t operator()(RegexId id) const { return store->HashOf(id); }
  };
  struct Equal {
    const RegexStore* store;
    bool operator()(RegexId x, RegexId y) const { return store->AreEqual(x, y); }
  };
  size_t HashOf(RegexId id) const;
  bool AreEqual(RegexId x, RegexId y) const;
  std::span<const RegexId> OperandsOf(const Node& node) const { return std::span(operands_).subspan(node.a, node.b); }
  // Adds `node` unless there is an equal one, and returns the id. The operands of kOr and kAnd are at the end of
  // operands_.
  RegexId Intern(Node node);
  RegexId InternList(Kind kind, const std::vector<RegexId>& operands);
  RegexId ConcatPair(RegexId first, RegexId second);
  RegexId AutomatonState(uint32_t index, int32_t state);
  RegexId ComputeDerivative(const Node& node, RegexId id, uint8_t byte);
  void RefineClasses(const ByteSet& set);
  // Returns bytes that lead to all derivatives: the smallest one of each group of SplitByDerivative, ascending.
  std::vector<uint8_t> FirstBytes(RegexId id);
  // The functions below are in emptiness.cc.
  enum class Emptiness : int8_t { kUnknown, kNothing, kSomething, kLimit };
  class TextSearch;
  Emptiness FindEmptiness(RegexId id);
  // Follows derivatives of ever smaller min_bytes. Returns true if they lead to a text.
  bool IsTextAhead(RegexId id);
  RegexId NearerText(RegexId id);
  Emptiness SearchText(RegexId id, bool may_relax);
  // Returns true if the expression needs a byte that it also excludes, so that it matches no text.
  bool LacksNeededByte(RegexId id) const;
  struct OccurringBytes;
  OccurringBytes CombineOccurringBytes(RegexId id, const std::unordered_map<RegexId, OccurringBytes>& parts) const;
  [[noreturn]] void ThrowEmptinessLimit() const;
  bool HasNoTextWithoutCounts(RegexId id);
  // Replaces counted repetitions outside complements by unlimited ones.
  RegexId WithoutCounts(RegexId id);
  // Replaces the repetitions outside complements by function(operand, min, max).
  template <typename Function>
  RegexId MapRepetitions(RegexId id, const Function& function, std::unordered_map<RegexId, RegexId>& done);
  // Replaces operands of kind `kind` by theirs, sorts, and removes duplicates. Merges sets of bytes into one.
  void Flatten(Kind kind, std::vector<RegexId>& operands);

  std::vector<Node> nodes_;
  std::vector<RegexId> operands_;
  std::vector<ByteSet> sets_;
  std::vector<std::shared_ptr<const ByteAutomaton>> automata_;
  std::vector<std::vector<ByteSet>> automaton_classes_;  // of each of automata_
  std::unordered_set<RegexId, Hash, Equal> ids_;
  std::unordered_map<uint64_t, RegexId> derivatives_;  // by id and byte, of expressions with many parts
  std::vector<Emptiness> emptiness_;                   // by id
  std::vector<int8_t> text_ahead_;                     // by id: 0 unknown, 1 no, 2 yes
  std::vector<uint32_t> last_visits_;                  // by id, for SplitByDerivative
  uint32_t visit_ = 0;
  std::array<uint8_t, 256> classes_{};
  size_t num_classes_ = 1;
  ByteSet representatives_ = ByteSet::Range(0, 0);
  uint64_t building_steps_left_ = kMaxBuildingSteps;
  size_t max_emptiness_steps_ = kMaxEmptinessSteps;
};

}  // namespace vllm
