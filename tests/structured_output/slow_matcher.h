// SlowMatcher: an obvious Earley parser of one byte per step, as a reference for the fast one. It repeats every rule of
// the algorithm until nothing changes. For tests; one thread.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/structured_output/grammar/grammar.h"

namespace vllm::testing_support {

class SlowMatcher {
 public:
  explicit SlowMatcher(Grammar grammar) : grammar_(std::move(grammar)) {}

  // Returns whether the grammar generates exactly this text.
  bool Accepts(std::string_view text) {
    Start();
    for (const char c : text) {
      if (!Step(static_cast<uint8_t>(c))) return false;
    }
    return MayEnd();
  }

  void Start() {
    rows_.assign(1, {});
    terminals_.clear();
    if (!grammar_.symbol(grammar_.start()).productive) return;
    rows_[0].Add({grammar_.start(), 0, 0});
    Close();
  }

  // Reads a special token. Returns false if no text of the grammar continues with it.
  bool StepToken(int32_t id) {
    terminals_.clear();
    rows_.emplace_back();
    const size_t last = rows_.size() - 1;
    for (const auto& [rule, state, origin] : rows_[last - 1].items) {
      for (const SymbolEdge& edge : Edges(rule, state)) {
        for (const TokenRange& range : grammar_.symbol(edge.symbol).tokens) {
          if (range.first <= id && id <= range.last) rows_[last].Add({rule, edge.to, origin});
        }
      }
    }
    Close();
    return !rows_[last].items.empty();
  }

  // Reads a byte. Returns false if no text of the grammar continues with it.
  bool Step(uint8_t byte) {
    std::set<Active> next;
    rows_.emplace_back();
    for (const auto& [terminal, regex, begin] : terminals_) {
      const RegexId rest = grammar_.regexes().Derivative(regex, byte);
      if (grammar_.regexes().IsNothing(rest)) continue;
      next.insert({terminal, rest, begin});
      if (grammar_.regexes().MatchesEmpty(rest)) Advance(begin, terminal);
    }
    terminals_ = std::move(next);
    Close();
    return !terminals_.empty() || !rows_.back().items.empty();
  }

  bool MayEnd() {
    for (const auto& [rule, state, origin] : rows_.back().items) {
      if (rule == grammar_.start() && origin == 0 && grammar_.symbol(rule).rule->IsFinal(state)) return true;
    }
    return false;
  }

 private:
  using Item = std::tuple<SymbolId, uint32_t, size_t>;   // rule, its state, the row where it began
  using Active = std::tuple<SymbolId, RegexId, size_t>;  // terminal, the rest of its text, the row where it began

  struct Row {
    // Returns whether the item is new.
    bool Add(const Item& item) {
      if (!known.insert(item).second) return false;
      items.push_back(item);
      return true;
    }

    std::vector<Item> items;
    std::set<Item> known;
  };

  const std::vector<SymbolEdge>& Edges(SymbolId rule, uint32_t state) {
    const auto [entry, added] = edges_.try_emplace(uint64_t{rule} << 32 | state);
    if (added) grammar_.symbol(rule).rule->AppendEdges(state, entry->second);
    return entry->second;
  }

  // Moves the items of row `begin` that expect `symbol` to the last row. Returns whether that added any.
  bool Advance(size_t begin, SymbolId symbol) {
    bool added = false;
    for (size_t i = 0; i < rows_[begin].items.size(); ++i) {
      const auto [rule, state, origin] = rows_[begin].items[i];
      for (const SymbolEdge& edge : Edges(rule, state)) {
        if (edge.symbol == symbol) added = rows_.back().Add({rule, edge.to, origin}) || added;
      }
    }
    return added;
  }

  void Close() {
    const size_t last = rows_.size() - 1;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < rows_[last].items.size(); ++i) {
        const auto [rule, state, origin] = rows_[last].items[i];
        if (grammar_.symbol(rule).rule->IsFinal(state)) changed = Advance(origin, rule) || changed;
        for (const SymbolEdge& edge : Edges(rule, state)) {
          if (grammar_.IsRule(edge.symbol)) {
            changed = rows_[last].Add({edge.symbol, 0, last}) || changed;
          } else if (grammar_.symbol(edge.symbol).tokens.empty()) {
            const RegexId regex = grammar_.symbol(edge.symbol).regex;
            terminals_.insert({edge.symbol, regex, last});
            if (grammar_.regexes().MatchesEmpty(regex)) changed = Advance(last, edge.symbol) || changed;
          }
        }
      }
    }
  }

  Grammar grammar_;
  std::unordered_map<uint64_t, std::vector<SymbolEdge>> edges_;  // by rule and state
  std::vector<Row> rows_;
  std::set<Active> terminals_;
};

}  // namespace vllm::testing_support
