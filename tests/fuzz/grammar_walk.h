// Walks through the texts of a grammar as bytes of a fuzzer choose. One thread.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {

// Every position that is reached must have a next byte, or a token, or may end.
inline void WalkGrammar(Grammar grammar, std::string_view choices) {
  bool has_tokens = false;
  for (SymbolId i = 0; i < grammar.num_symbols(); ++i) has_tokens = has_tokens || !grammar.symbol(i).tokens.empty();
  GrammarAutomaton automaton(std::move(grammar), std::make_shared<const VocabTrie>(std::vector<std::string>(), 0));
  GrammarAutomaton::Position position;
  for (const char choice : choices.substr(0, 48)) {
    std::vector<GrammarAutomaton::Position> next;
    for (int byte = 0; byte < 256; ++byte) {
      GrammarAutomaton::Position to = position;
      const char c = static_cast<char>(byte);
      if (automaton.Advance(to, std::string_view(&c, 1))) next.push_back(std::move(to));
    }
    if (next.empty()) {
      Require(has_tokens || automaton.MayEnd(position), "a position has a next byte or may end");
      return;
    }
    position = next[static_cast<unsigned char>(choice) % next.size()];
  }
}

}  // namespace vllm
