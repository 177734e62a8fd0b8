// ByteGrammarAutomaton: a deterministic automaton over bytes for one ByteGrammar, which it makes while texts need it. A
// state is a set of configurations, each with a state of the grammar and a stack of the rules that are open. A call at
// the end of its rule replaces the rule on the stack. Equal stacks and equal sets are stored once, so a position that
// many texts reach has one state, and the tokens that may follow it are computed once. Shared by all sequences of a
// grammar. Any thread: a lock protects the states.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/structured_output/byte_grammar.h"
#include "engine/structured_output/matcher/grammar_automaton.h"
#include "engine/structured_output/matcher/vocab_trie.h"

namespace vllm {

class ByteGrammarAutomaton {
 public:
  // Limits for the sake of memory. A sequence that needs more fails.
  static constexpr size_t kMaxConfigurations = 4096;  // of one state
  static constexpr size_t kMaxStates = size_t{1} << 15;
  static constexpr size_t kMaxStacks = size_t{1} << 18;
  // The automaton discards all states when it has more than this many, and twice as many as the longest text needed
  // when its states were made again.
  static constexpr size_t kKeptStates = 4096;
  static constexpr size_t kKeptMasks = 256;

  // A position in a text that the grammar allows. Initially the start of the text.
  struct Position {
    std::string text;
    // For ByteGrammarAutomaton: the state, unless the automaton has discarded its states since.
    uint64_t generation = 0;
    int32_t state = 0;
  };

  // Throws std::runtime_error if the start of the text exceeds a limit.
  ByteGrammarAutomaton(ByteGrammar grammar, std::shared_ptr<const VocabTrie> trie);

  // Moves the position past `bytes`. Returns false and leaves it unchanged if the grammar does not allow them. Throws
  // std::runtime_error if the grammar is so ambiguous that the text exceeds a limit.
  bool Advance(Position& position, std::string_view bytes);
  // Returns the tokens whose bytes may follow. Throws like Advance.
  std::shared_ptr<const TokenBitmask> AllowedTokens(Position& position);
  // Returns true if the text may end here. Throws like Advance.
  bool MayEnd(Position& position);

  // Returns whether the grammar generates any text.
  bool generates_text() const { return grammar_.HeightOf(grammar_.start()) <= ByteGrammar::kMaxDepth; }
  const VocabTrie& trie() const { return *trie_; }

 private:
  static constexpr int32_t kDead = -1;
  static constexpr int32_t kUnknown = -2;
  struct Configuration {
    ByteGrammarState state;
    uint32_t stack;
    auto operator<=>(const Configuration&) const = default;
  };
  struct Stack {
    ByteGrammarState to;  // where the rule below continues
    uint32_t below;
    uint16_t depth;
  };
  struct State {
    std::vector<Configuration> configurations;  // sorted; those that can read a byte
    bool may_end = false;
    std::unique_ptr<std::array<int32_t, 256>> next;  // by byte; null: nothing is known yet
    std::shared_ptr<const TokenBitmask> allowed;     // null: not computed
  };

  void Clear();
  int32_t StateAt(Position& position);
  int32_t Step(int32_t state, uint8_t byte);
  // Adds all configurations that `pending` reaches without a byte, and returns the index of the resulting state.
  int32_t Close(std::vector<Configuration>& pending);
  uint32_t Push(ByteGrammarState to, uint32_t below);
  int32_t Intern(std::vector<Configuration> configurations, bool may_end);

  const ByteGrammar grammar_;
  const std::shared_ptr<const VocabTrie> trie_;

  std::mutex mutex_;  // protects everything below
  uint64_t generation_ = 0;
  std::vector<State> states_;
  std::unordered_map<std::string, int32_t> state_ids_;
  std::vector<Stack> stacks_;  // stacks_[0] is empty
  std::unordered_map<uint64_t, uint32_t> stack_ids_;
  size_t num_masks_ = 0;
  size_t max_states_ = kKeptStates;  // more are discarded
  std::vector<int32_t> path_;        // scratch of AllowedTokens
};

}  // namespace vllm
