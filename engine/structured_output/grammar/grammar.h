// Grammar: a context-free grammar over bytes. A terminal is a regular expression over bytes, or a set of special
// tokens, which have no bytes. The text of a terminal may end at each match of its expression, not only at the longest
// match. A text that the terminal matches is not split further, so terminals should be as large as possible: matching
// is fast inside a terminal.
//
// GrammarBuilder makes a Grammar. Both belong to one thread at a time: the rules and expressions grow while texts are
// matched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/structured_output/grammar/rule_automaton.h"
#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

// Special tokens first..last.
struct TokenRange {
  int32_t first = 0, last = 0;
};

class Grammar {
 public:
  struct Symbol {
    // A rule: not null. A terminal: null.
    std::unique_ptr<RuleAutomaton> rule;
    // A terminal: an expression, or if `tokens` is not empty, special tokens. The expression matches at least one text.
    RegexId regex = RegexStore::kNothing;
    std::vector<TokenRange> tokens;
    bool nullable = false;    // has the empty text
    bool productive = false;  // has a text; other symbols do not occur on edges
  };

  // A rule.
  SymbolId start() const { return start_; }
  size_t num_symbols() const { return symbols_.size(); }
  bool IsRule(SymbolId symbol) const { return symbols_[symbol].rule != nullptr; }
  const Symbol& symbol(SymbolId id) const { return symbols_[id]; }
  RegexStore& regexes() { return *regexes_; }
  // Returns about how much memory the rules and expressions need. O(num_symbols).
  size_t memory_bytes() const;

 private:
  friend class GrammarBuilder;
  std::unique_ptr<RegexStore> regexes_ = std::make_unique<RegexStore>();
  std::vector<Symbol> symbols_;
  SymbolId start_ = 0;
};

class GrammarBuilder {
 public:
  static constexpr size_t kMaxSymbols = 500'000;
  static constexpr SymbolId kNoSymbol = UINT32_MAX;
  static constexpr uint32_t kUnbounded = RegexStore::kUnbounded;

  RegexStore& regexes() { return *grammar_.regexes_; }

  // A terminal that matches a regular expression. Equal expressions have one symbol.
  SymbolId AddTerminal(RegexId regex);
  // A terminal that matches one of the special tokens.
  SymbolId AddTokens(std::vector<TokenRange> tokens);
  // A rule without any alternative, which has no text until alternatives are added or SetRule is called.
  SymbolId AddRule();
  // Adds an alternative to a rule made by AddRule(). An empty list is the empty text.
  void AddAlternative(SymbolId rule, std::vector<SymbolId> symbols);
  // Sets the right-hand side of a rule without alternatives.
  void SetRule(SymbolId rule, std::unique_ptr<RuleAutomaton> automaton);
  // A rule for min to max texts of `item`, with `separator` (or kNoSymbol) between them.
  SymbolId AddRepeat(SymbolId item, SymbolId separator, uint32_t min, uint32_t max);
  // A rule with one alternative for each symbol.
  SymbolId AddChoice(std::span<const SymbolId> symbols);

  // Returns the grammar and leaves the builder empty. The start may have no text: see Symbol::productive.
  // Throws GrammarLimitError.
  Grammar Finish(SymbolId start);

 private:
  SymbolId AddSymbol(Grammar::Symbol symbol);

  Grammar grammar_;
  std::vector<std::vector<std::vector<SymbolId>>> alternatives_;  // by symbol
  std::unordered_map<RegexId, SymbolId> terminals_;
};

}  // namespace vllm
