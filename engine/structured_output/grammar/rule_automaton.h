// RuleAutomaton: the right-hand side of one rule of a Grammar, as an automaton over symbols. It may make its states
// while texts need them, so a rule may have more states than memory can store, such as one for each set of keys of an
// object. Owned by its Grammar; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vllm {

// A terminal or a rule of a Grammar. See GrammarBuilder.
using SymbolId = uint32_t;

struct SymbolEdge {
  SymbolId symbol = 0;
  uint32_t to = 0;  // a state of the rule
};

class RuleAutomaton {
 public:
  virtual ~RuleAutomaton() = default;

  // Called by GrammarBuilder::Finish, with more and more symbols for which `productive` is true: those that are known
  // to have a text. From then on, AppendEdges must leave out all edges with other symbols and those from whose end no
  // final state can be reached. Returns whether a final state can be reached from state 0.
  virtual bool Restrict(const std::vector<bool>& productive) = 0;

  // Appends the symbols on which the result of Restrict and the edges depend, at least those that are rules. May append
  // a symbol several times.
  virtual void AppendSymbols(std::vector<SymbolId>& symbols) const = 0;

  // Appends the edges of a state that AppendEdges has returned, or of state 0, the first one. Throws GrammarLimitError.
  virtual void AppendEdges(uint32_t state, std::vector<SymbolEdge>& edges) = 0;
  // Returns whether the rule may end in the state.
  virtual bool IsFinal(uint32_t state) = 0;

  // Returns about how much memory the rule and its states need.
  virtual size_t memory_bytes() const = 0;
};

}  // namespace vllm
