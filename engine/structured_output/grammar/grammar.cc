#include "engine/structured_output/grammar/grammar.h"

#include <string>
#include <unordered_set>

#include "engine/structured_output/grammar/static_rules.h"

namespace vllm {
namespace {

// The most states of one rule that are looked at to find out whether it has the empty text.
constexpr size_t kMaxNullableStates = 100'000;

// Returns whether a final state can be reached by symbols that have the empty text.
bool HasEmptyText(RuleAutomaton& rule, const Grammar& grammar) {
  std::vector<uint32_t> pending = {0};
  std::unordered_set<uint32_t> seen = {0};
  std::vector<SymbolEdge> edges;
  while (!pending.empty()) {
    const uint32_t state = pending.back();
    pending.pop_back();
    if (rule.IsFinal(state)) return true;
    edges.clear();
    rule.AppendEdges(state, edges);
    for (const SymbolEdge& edge : edges) {
      if (!grammar.symbol(edge.symbol).nullable || !seen.insert(edge.to).second) continue;
      if (seen.size() > kMaxNullableStates) throw GrammarLimitError("the grammar has too many empty symbols in a rule");
      pending.push_back(edge.to);
    }
  }
  return false;
}

}  // namespace

size_t Grammar::memory_bytes() const {
  size_t num_bytes = regexes_->memory_bytes() + symbols_.size() * sizeof(Symbol);
  for (const Symbol& symbol : symbols_) {
    if (symbol.rule != nullptr) num_bytes += symbol.rule->memory_bytes();
    num_bytes += symbol.tokens.size() * sizeof(TokenRange);
  }
  return num_bytes;
}

SymbolId GrammarBuilder::AddSymbol(Grammar::Symbol symbol) {
  if (grammar_.symbols_.size() == kMaxSymbols) {
    throw GrammarLimitError("the grammar has too many symbols (limit " + std::to_string(kMaxSymbols) + ")");
  }
  grammar_.symbols_.push_back(std::move(symbol));
  alternatives_.emplace_back();
  return static_cast<SymbolId>(grammar_.symbols_.size() - 1);
}

SymbolId GrammarBuilder::AddTerminal(RegexId regex) {
  if (const auto it = terminals_.find(regex); it != terminals_.end()) return it->second;
  Grammar::Symbol symbol;
  symbol.regex = regex;
  const SymbolId id = AddSymbol(std::move(symbol));
  terminals_.emplace(regex, id);
  return id;
}

SymbolId GrammarBuilder::AddTokens(std::vector<TokenRange> tokens) {
  Grammar::Symbol symbol;
  symbol.tokens = std::move(tokens);
  return AddSymbol(std::move(symbol));
}

SymbolId GrammarBuilder::AddRule() {
  Grammar::Symbol symbol;
  symbol.rule = std::make_unique<AlternativesRule>();
  return AddSymbol(std::move(symbol));
}

void GrammarBuilder::AddAlternative(SymbolId rule, std::vector<SymbolId> symbols) {
  alternatives_[rule].push_back(std::move(symbols));
}

void GrammarBuilder::SetRule(SymbolId rule, std::unique_ptr<RuleAutomaton> automaton) {
  grammar_.symbols_[rule].rule = std::move(automaton);
}

SymbolId GrammarBuilder::AddRepeat(SymbolId item, SymbolId separator, uint32_t min, uint32_t max) {
  Grammar::Symbol symbol;
  symbol.rule = std::make_unique<RepeatRule>(item, separator, min, max);
  return AddSymbol(std::move(symbol));
}

SymbolId GrammarBuilder::AddChoice(std::span<const SymbolId> symbols) {
  const SymbolId rule = AddRule();
  for (const SymbolId symbol : symbols) AddAlternative(rule, {symbol});
  return rule;
}

Grammar GrammarBuilder::Finish(SymbolId start) {
  if (!grammar_.IsRule(start)) start = AddChoice(std::span(&start, 1));
  std::vector<Grammar::Symbol>& symbols = grammar_.symbols_;
  std::vector<bool> productive(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) {
    Grammar::Symbol& symbol = symbols[i];
    if (!alternatives_[i].empty()) symbol.rule = std::make_unique<AlternativesRule>(std::move(alternatives_[i]));
    if (symbol.rule != nullptr) continue;
    productive[i] = !symbol.tokens.empty() || !regexes().IsNothing(symbol.regex);
    symbol.nullable = symbol.tokens.empty() && regexes().MatchesEmpty(symbol.regex);
  }
  // Repeat until a round changes nothing. Rules usually follow the rules that use them, so a round goes backward.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = symbols.size(); i-- > 0;) {
      if (symbols[i].rule == nullptr || productive[i] || !symbols[i].rule->Restrict(productive)) continue;
      productive[i] = true;
      changed = true;
    }
  }
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].productive = productive[i];
    if (symbols[i].rule != nullptr) symbols[i].rule->Restrict(productive);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = symbols.size(); i-- > 0;) {
      if (symbols[i].rule == nullptr || symbols[i].nullable || !HasEmptyText(*symbols[i].rule, grammar_)) continue;
      symbols[i].nullable = true;
      changed = true;
    }
  }
  regexes().FinishBuilding();
  grammar_.start_ = start;
  alternatives_.clear();
  terminals_.clear();
  return std::exchange(grammar_, Grammar());
}

}  // namespace vllm
