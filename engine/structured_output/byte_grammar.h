// ByteGrammar: a context-free grammar over bytes, as one nondeterministic finite automaton per rule. An edge reads a
// byte, reads what a rule generates, or reads nothing. ByteGrammarBuilder makes a ByteGrammar. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace vllm {

using ByteGrammarState = uint32_t;
using ByteGrammarRule = uint32_t;

struct ByteEdge {
  uint8_t low = 0, high = 0;  // the bytes low..high
  ByteGrammarState to = 0;
};

struct CallEdge {
  ByteGrammarRule rule = 0;
  ByteGrammarState to = 0;
};

class ByteGrammar {
 public:
  // The number of rules that may be open at once. A JSON value inside kMaxDepth arrays or objects is not generated.
  static constexpr uint16_t kMaxDepth = 512;
  static constexpr uint16_t kUnreachable = kMaxDepth + 1;

  std::span<const ByteEdge> BytesOf(ByteGrammarState state) const {
    return Range(bytes_, states_[state].bytes, state, 0);
  }
  std::span<const CallEdge> CallsOf(ByteGrammarState state) const {
    return Range(calls_, states_[state].calls, state, 1);
  }
  std::span<const ByteGrammarState> EmptyEdgesOf(ByteGrammarState state) const {
    return Range(empty_, states_[state].empty, state, 2);
  }
  // A rule ends in its only final state, which has no edges.
  bool IsFinal(ByteGrammarState state) const { return states_[state].is_final; }
  // Returns how many more rules must be open at once to get from `state` to the end of its rule, or kUnreachable if
  // the end cannot be reached.
  uint16_t HeightOf(ByteGrammarState state) const { return states_[state].height; }
  ByteGrammarState StartOf(ByteGrammarRule rule) const { return rule_starts_[rule]; }
  ByteGrammarState start() const { return rule_starts_[0]; }  // of rule 0, which generates the whole text
  size_t num_states() const { return states_.size() - 1; }

 private:
  friend class ByteGrammarBuilder;
  struct State {
    uint32_t bytes = 0, calls = 0, empty = 0;  // indices of the state's first edges; the next state's begin at its end
    uint16_t height = kUnreachable;
    bool is_final = false;
  };
  template <typename Edge>
  std::span<const Edge> Range(const std::vector<Edge>& edges, uint32_t begin, ByteGrammarState state, int kind) const {
    const State& next = states_[state + 1];
    const uint32_t end = kind == 0 ? next.bytes : kind == 1 ? next.calls : next.empty;
    return std::span(edges).subspan(begin, end - begin);
  }

  std::vector<State> states_;  // and one at the end, which only marks the end of the edges
  std::vector<ByteEdge> bytes_;
  std::vector<CallEdge> calls_;
  std::vector<ByteGrammarState> empty_;
  std::vector<ByteGrammarState> rule_starts_;
};

// Builds a ByteGrammar state by state. The functions that add a path return the state at its end. One thread.
class ByteGrammarBuilder {
 public:
  // The most states of a grammar.
  static constexpr size_t kMaxStates = size_t{1} << 20;

  // Creates a rule with its first and its final state. The first rule generates the whole text.
  ByteGrammarRule AddRule();
  ByteGrammarState StartOf(ByteGrammarRule rule) const { return rules_[rule].start; }
  ByteGrammarState EndOf(ByteGrammarRule rule) const { return rules_[rule].end; }

  // Throws RequestError if the grammar has kMaxStates states.
  ByteGrammarState AddState();
  void AddBytes(ByteGrammarState from, uint8_t low, uint8_t high, ByteGrammarState to);
  void AddEmpty(ByteGrammarState from, ByteGrammarState to);
  void AddCall(ByteGrammarState from, ByteGrammarRule rule, ByteGrammarState to);
  ByteGrammarState AddLiteral(ByteGrammarState from, std::string_view bytes);
  // Reads the UTF-8 encoding of any code point in low..high except surrogates. REQUIRES: low <= high <= 0x10FFFF.
  void AddCodePoints(ByteGrammarState from, char32_t low, char32_t high, ByteGrammarState to);

  // Returns the grammar and leaves the builder empty.
  ByteGrammar Finish();

 private:
  struct Rule {
    ByteGrammarState start = 0, end = 0;
  };
  struct Edge {
    enum class Kind : uint8_t { kBytes, kCall, kEmpty };
    Kind kind;
    uint8_t low, high;
    ByteGrammarState from, to;
    ByteGrammarRule rule;
  };
  void AddSequence(ByteGrammarState from, std::string_view low, std::string_view high, ByteGrammarState to);
  void ComputeHeights(ByteGrammar& grammar) const;

  std::vector<Rule> rules_;
  std::vector<Edge> edges_;
  size_t num_states_ = 0;
};

}  // namespace vllm
