// Walks through the texts of a grammar as bytes of a fuzzer choose. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {

// Returns the bytes that may follow.
inline std::string NextBytes(GrammarAutomaton& automaton, const GrammarAutomaton::Position& position) {
  std::string bytes;
  GrammarAutomaton::Position to = position;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (!automaton.Advance(to, std::string_view(&c, 1))) continue;
    bytes.push_back(c);
    to = position;
  }
  return bytes;
}

// Moves the position past the byte of `bytes` that `choice` chooses. REQUIRES: the bytes are those of NextBytes.
inline void AdvanceByChoice(GrammarAutomaton& automaton, GrammarAutomaton::Position& position, std::string_view bytes,
                            char choice) {
  const size_t index = static_cast<unsigned char>(choice) % bytes.size();
  Require(automaton.Advance(position, bytes.substr(index, 1)), "a byte that may follow may follow again");
}

// Every position that is reached must have a next byte, or a token, or may end.
inline void WalkGrammar(Grammar grammar, std::string_view choices) {
  bool has_tokens = false;
  for (SymbolId i = 0; i < grammar.num_symbols(); ++i) has_tokens = has_tokens || !grammar.symbol(i).tokens.empty();
  GrammarAutomaton automaton(std::move(grammar), std::make_shared<const VocabTrie>(std::vector<std::string>(), 0));
  GrammarAutomaton::Position position;
  for (const char choice : choices.substr(0, 48)) {
    const std::string bytes = NextBytes(automaton, position);
    if (bytes.empty()) {
      Require(has_tokens || automaton.MayEnd(position), "a position has a next byte or may end");
      return;
    }
    AdvanceByChoice(automaton, position, bytes, choice);
  }
}

}  // namespace vllm
