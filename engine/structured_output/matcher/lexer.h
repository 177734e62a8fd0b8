// Lexer: which terminals of a Grammar match the bytes since the start of a terminal. A deterministic automaton whose
// states are made while texts need them. A state is the set of terminals that may still match, each with the rest of
// its expression. Owned by a GrammarAutomaton; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/structured_output/grammar/grammar.h"

namespace vllm {

class Lexer {
 public:
  using StateId = int32_t;
  static constexpr StateId kDead = -1;  // no terminal continues

  // `grammar` must outlive the lexer.
  explicit Lexer(Grammar& grammar);

  // Returns the state in which all `terminals` are at their start, or kDead if there are none. REQUIRES: ascending.
  StateId Start(std::span<const SymbolId> terminals);
  // Returns the state after one more byte. Throws GrammarLimitError.
  StateId Next(StateId state, uint8_t byte) {
    const StateId next = next_[static_cast<size_t>(state) * num_classes_ + classes_[byte]];
    return next != kUnknown ? next : Compute(state, byte);
  }
  // Returns the first byte that leads to the same state as `byte`, as far as the expressions show it.
  uint8_t Representative(StateId state, uint8_t byte) {
    if (!states_[static_cast<size_t>(state)].has_groups) FindGroups(state);
    return groups_[static_cast<size_t>(state) * num_classes_ + classes_[byte]];
  }
  // The terminals that match the bytes so far, ascending. Not for a start state, where the empty text counts as
  // skipped.
  std::span<const SymbolId> Accepting(StateId state) const { return states_[static_cast<size_t>(state)].accepting; }
  // Returns the number of terminals that may still match.
  size_t NumTerminals(StateId state) const { return states_[static_cast<size_t>(state)].rests.size(); }
  // Returns true if some terminal may match a longer text.
  bool CanContinue(StateId state) const { return states_[static_cast<size_t>(state)].can_continue; }

  size_t num_classes() const { return num_classes_; }
  uint8_t ClassOf(uint8_t byte) const { return classes_[byte]; }
  // One byte of each class.
  std::span<const uint8_t> representatives() const { return std::span(representatives_).first(num_classes_); }
  // Returns the number of bytes in the class.
  size_t ClassSize(size_t byte_class) const { return class_sizes_[byte_class]; }

  size_t num_states() const { return states_.size(); }
  size_t memory_bytes() const { return memory_bytes_ + grammar_.regexes().memory_bytes() - first_regex_bytes_; }
  // Forgets all states and the expressions that they have made.
  void Clear();

 private:
  static constexpr StateId kUnknown = -2;
  struct Rest {
    SymbolId terminal;
    RegexId regex;
  };
  struct State {
    std::vector<Rest> rests;
    std::vector<SymbolId> accepting;
    bool can_continue = false;
    bool has_groups = false;  // in groups_
  };
  void FindGroups(StateId state);
  StateId Compute(StateId state, uint8_t byte);
  StateId Intern(std::vector<Rest> rests);

  Grammar& grammar_;
  const size_t num_regexes_;  // of the grammar, before any derivative
  size_t first_regex_bytes_;  // their memory
  std::array<uint8_t, 256> classes_{};
  std::array<uint8_t, 256> representatives_{};
  std::array<uint16_t, 256> class_sizes_{};
  size_t num_classes_ = 0;
  std::vector<State> states_;
  std::vector<StateId> next_;    // [num_states, num_classes]
  std::vector<uint8_t> groups_;  // [num_states, num_classes]: see Representative
  std::unordered_map<std::string, StateId> ids_;
  size_t memory_bytes_ = 0;
};

}  // namespace vllm
