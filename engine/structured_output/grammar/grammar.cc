#include "engine/structured_output/grammar/grammar.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/structured_output/grammar/static_rules.h"

namespace vllm {
namespace {

// The most states of one rule that are looked at to find out whether it has the empty text.
constexpr size_t kMaxNullableStates = 100'000;
// The most symbols of rules that are looked at to find the rules that have a text, or the empty one.
constexpr size_t kMaxRuleSteps = 50'000'000;

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

// The rules that use each symbol.
class RuleUsers {
 public:
  explicit RuleUsers(const std::vector<Grammar::Symbol>& symbols)
      : begins_(symbols.size() + 1, 0), sizes_(symbols.size(), 0) {
    std::vector<SymbolId> used;
    const auto for_each = [&](const auto& visit) {
      for (SymbolId rule = 0; rule < symbols.size(); ++rule) {
        if (symbols[rule].rule == nullptr) continue;
        used.clear();
        symbols[rule].rule->AppendSymbols(used);
        sizes_[rule] = used.size();
        for (const SymbolId symbol : used) visit(symbol, rule);
      }
    };
    for_each([&](SymbolId symbol, SymbolId) { ++begins_[symbol + 1]; });
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    users_.resize(begins_.back());
    std::vector<size_t> ends(begins_.begin(), begins_.end() - 1);
    for_each([&](SymbolId symbol, SymbolId rule) { users_[ends[symbol]++] = rule; });
  }

  std::span<const SymbolId> Of(SymbolId symbol) const {
    return std::span(users_).subspan(begins_[symbol], begins_[symbol + 1] - begins_[symbol]);
  }
  // Returns the number of symbols that the rule uses.
  size_t SizeOf(SymbolId rule) const { return sizes_[rule]; }

 private:
  std::vector<size_t> begins_;  // of the users of each symbol
  std::vector<SymbolId> users_;
  std::vector<size_t> sizes_;
};

// Finds out which rules have a property that depends on the symbols that they use: calls `holds` for each rule, and
// again when one of its symbols got the property, until it returns true or nothing changes. Goes backward in rounds,
// because rules usually follow the rules that use them.
template <typename Holds>
void FindRules(const std::vector<Grammar::Symbol>& symbols, const RuleUsers& users, const Holds& holds) {
  std::vector<bool> has_property(symbols.size());
  std::vector<bool> is_waiting(symbols.size(), true);
  std::vector<SymbolId> round;  // a heap
  std::vector<SymbolId> next_round;
  for (size_t i = symbols.size(); i-- > 0;) {
    if (symbols[i].rule != nullptr) round.push_back(static_cast<SymbolId>(i));
  }
  size_t num_steps = 0;
  while (!round.empty()) {
    std::ranges::pop_heap(round);
    const SymbolId rule = round.back();
    round.pop_back();
    is_waiting[rule] = false;
    num_steps += 1 + users.SizeOf(rule);
    if (num_steps > kMaxRuleSteps) {
      throw GrammarLimitError("the grammar needs too many steps to find out which rules have a text (limit " +
                              std::to_string(kMaxRuleSteps) + ")");
    }
    if (holds(rule)) {
      has_property[rule] = true;
      for (const SymbolId user : users.Of(rule)) {
        if (has_property[user] || is_waiting[user]) continue;
        is_waiting[user] = true;
        if (user < rule) {
          round.push_back(user);
          std::ranges::push_heap(round);
        } else {
          next_round.push_back(user);
        }
      }
    }
    if (round.empty()) {
      std::swap(round, next_round);
      std::ranges::make_heap(round);
    }
  }
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
  const RuleUsers users(symbols);
  FindRules(symbols, users, [&](SymbolId rule) { return productive[rule] = symbols[rule].rule->Restrict(productive); });
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].productive = productive[i];
    if (symbols[i].rule != nullptr) symbols[i].rule->Restrict(productive);
  }
  FindRules(symbols, users,
            [&](SymbolId rule) { return symbols[rule].nullable = HasEmptyText(*symbols[rule].rule, grammar_); });
  regexes().FinishBuilding();
  grammar_.start_ = start;
  alternatives_.clear();
  terminals_.clear();
  return std::exchange(grammar_, Grammar());
}

}  // namespace vllm
