// Grammar: a context-free grammar over bytes, as one nondeterministic finite automaton per rule. An edge reads a byte,
// reads what a rule generates, or reads nothing. GrammarBuilder makes a Grammar. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace vllm {

using GrammarState = uint32_t;
using GrammarRule = uint32_t;

struct ByteEdge {
  uint8_t low = 0, high = 0;  // the bytes low..high
  GrammarState to = 0;
};

struct CallEdge {
  GrammarRule rule = 0;
  GrammarState to = 0;
};

class Grammar {
 public:
  // The number of rules that may be open at once. A JSON value inside kMaxDepth arrays or objects is not generated.
  static constexpr uint16_t kMaxDepth = 512;
  static constexpr uint16_t kUnreachable = kMaxDepth + 1;

  std::span<const ByteEdge> BytesOf(GrammarState state) const { return Range(bytes_, states_[state].bytes, state, 0); }
  std::span<const CallEdge> CallsOf(GrammarState state) const { return Range(calls_, states_[state].calls, state, 1); }
  std::span<const GrammarState> EmptyEdgesOf(GrammarState state) const {
    return Range(empty_, states_[state].empty, state, 2);
  }
  // A rule ends in its only final state, which has no edges.
  bool IsFinal(GrammarState state) const { return states_[state].is_final; }
  // Returns how many more rules must be open at once to get from `state` to the end of its rule, or kUnreachable if
  // the end cannot be reached.
  uint16_t HeightOf(GrammarState state) const { return states_[state].height; }
  GrammarState StartOf(GrammarRule rule) const { return rule_starts_[rule]; }
  GrammarState start() const { return rule_starts_[0]; }  // of rule 0, which generates the whole text
  size_t num_states() const { return states_.size() - 1; }

 private:
  friend class GrammarBuilder;
  struct State {
    uint32_t bytes = 0, calls = 0, empty = 0;  // indices of the state's first edges; the next state's begin at its end
    uint16_t height = kUnreachable;
    bool is_final = false;
  };
  template <typename Edge>
  std::span<const Edge> Range(const std::vector<Edge>& edges, uint32_t begin, GrammarState state, int kind) const {
    const State& next = states_[state + 1];
    const uint32_t end = kind == 0 ? next.bytes : kind == 1 ? next.calls : next.empty;
    return std::span(edges).subspan(begin, end - begin);
  }

  std::vector<State> states_;  // and one at the end, which only marks the end of the edges
  std::vector<ByteEdge> bytes_;
  std::vector<CallEdge> calls_;
  std::vector<GrammarState> empty_;
  std::vector<GrammarState> rule_starts_;
};

// Builds a Grammar state by state. The functions that add a path return the state at its end. One thread.
class GrammarBuilder {
 public:
  // The most states of a grammar.
  static constexpr size_t kMaxStates = size_t{1} << 20;

  // Creates a rule with its first and its final state. The first rule generates the whole text.
  GrammarRule AddRule();
  GrammarState StartOf(GrammarRule rule) const { return rules_[rule].start; }
  GrammarState EndOf(GrammarRule rule) const { return rules_[rule].end; }

  // Throws RequestError if the grammar has kMaxStates states.
  GrammarState AddState();
  void AddBytes(GrammarState from, uint8_t low, uint8_t high, GrammarState to);
  void AddEmpty(GrammarState from, GrammarState to);
  void AddCall(GrammarState from, GrammarRule rule, GrammarState to);
  GrammarState AddLiteral(GrammarState from, std::string_view bytes);
  // Reads the UTF-8 encoding of any code point in low..high except surrogates. REQUIRES: low <= high <= 0x10FFFF.
  void AddCodePoints(GrammarState from, char32_t low, char32_t high, GrammarState to);

  // Returns the grammar and leaves the builder empty.
  Grammar Finish();

 private:
  struct Rule {
    GrammarState start = 0, end = 0;
  };
  struct Edge {
    enum class Kind : uint8_t { kBytes, kCall, kEmpty };
    Kind kind;
    uint8_t low, high;
    GrammarState from, to;
    GrammarRule rule;
  };
  void AddSequence(GrammarState from, std::string_view low, std::string_view high, GrammarState to);
  void ComputeHeights(Grammar& grammar) const;

  std::vector<Rule> rules_;
  std::vector<Edge> edges_;
  size_t num_states_ = 0;
};

}  // namespace vllm
