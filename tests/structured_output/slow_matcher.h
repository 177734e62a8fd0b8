// SlowMatcher: an obvious Earley parser of one byte per step, as a reference for the fast one. It repeats every rule of
// the algorithm until nothing changes. For tests; one thread.
#pragma once

#include <set>
#include <string_view>
#include <tuple>
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
    rows_[0].insert({grammar_.start(), 0, 0});
    Close();
  }

  // Reads a special token. Returns false if no text of the grammar continues with it.
  bool StepToken(int32_t id) {
    terminals_.clear();
    rows_.emplace_back();
    const size_t last = rows_.size() - 1;
    std::vector<SymbolEdge> edges;
    for (const auto& [rule, state, origin] : rows_[last - 1]) {
      edges.clear();
      grammar_.symbol(rule).rule->AppendEdges(state, edges);
      for (const SymbolEdge& edge : edges) {
        for (const TokenRange& range : grammar_.symbol(edge.symbol).tokens) {
          if (range.first <= id && id <= range.last) rows_[last].insert({rule, edge.to, origin});
        }
      }
    }
    Close();
    return !rows_[last].empty();
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
    return !terminals_.empty() || !rows_.back().empty();
  }

  bool MayEnd() {
    for (const auto& [rule, state, origin] : rows_.back()) {
      if (rule == grammar_.start() && origin == 0 && grammar_.symbol(rule).rule->IsFinal(state)) return true;
    }
    return false;
  }

 private:
  using Item = std::tuple<SymbolId, uint32_t, size_t>;   // rule, its state, the row where it began
  using Active = std::tuple<SymbolId, RegexId, size_t>;  // terminal, the rest of its text, the row where it began

  // Moves the items of row `begin` that expect `symbol` to the last row. Returns whether that added any.
  bool Advance(size_t begin, SymbolId symbol) {
    bool added = false;
    std::vector<SymbolEdge> edges;
    for (const auto& [rule, state, origin] : std::vector<Item>(rows_[begin].begin(), rows_[begin].end())) {
      edges.clear();
      grammar_.symbol(rule).rule->AppendEdges(state, edges);
      for (const SymbolEdge& edge : edges) {
        if (edge.symbol == symbol) added = rows_.back().insert({rule, edge.to, origin}).second || added;
      }
    }
    return added;
  }

  void Close() {
    const size_t last = rows_.size() - 1;
    std::vector<SymbolEdge> edges;
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [rule, state, origin] : std::vector<Item>(rows_[last].begin(), rows_[last].end())) {
        if (grammar_.symbol(rule).rule->IsFinal(state)) changed = Advance(origin, rule) || changed;
        edges.clear();
        grammar_.symbol(rule).rule->AppendEdges(state, edges);
        for (const SymbolEdge& edge : edges) {
          if (grammar_.IsRule(edge.symbol)) {
            changed = rows_[last].insert({edge.symbol, 0, last}).second || changed;
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
  std::vector<std::set<Item>> rows_;
  std::set<Active> terminals_;
};

}  // namespace vllm::testing_support
