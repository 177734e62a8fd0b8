#include "engine/structured_output/matcher/row_store.h"

#include <algorithm>
#include <set>
#include <utility>

namespace vllm {
namespace {

[[noreturn]] void ThrowLimit(const char* what, size_t limit) {
  throw GrammarLimitError("the grammar is too ambiguous here (more than " + std::to_string(limit) + " " + what + ")");
}

}  // namespace

void RowStore::Clear() {
  rows_.clear();
  ids_.clear();
  memory_bytes_ = 0;
}

RowStore::RowId RowStore::Start() {
  std::vector<Item> items = {{grammar_.start(), 0, kEndOfText, grammar_.start()}};
  return Finish(items);
}

RowStore::RowId RowStore::Scan(RowId row, std::span<const SymbolId> terminals) {
  std::vector<Item> items;
  for (const SymbolId terminal : terminals) {
    for (const Waiting& waiting : std::ranges::equal_range(rows_[row].waiting, terminal, {}, &Waiting::symbol)) {
      items.push_back(waiting.item);
    }
  }
  return Finish(items);
}

RowStore::RowId RowStore::Finish(std::vector<Item>& items) {
  // An item in a final state continues the items that wait for its rule.
  std::set<Item> seen;
  std::set<std::pair<RowId, SymbolId>> completed;
  std::vector<Item> kernel;
  bool may_end = false;
  while (!items.empty()) {
    const Item item = items.back();
    items.pop_back();
    if (!seen.insert(item).second) continue;
    if (seen.size() > kMaxItems) ThrowLimit("items", kMaxItems);
    edges_.clear();
    RuleAutomaton& rule = *grammar_.symbol(item.rule).rule;
    rule.AppendEdges(item.state, edges_);
    if (!edges_.empty()) kernel.push_back(item);
    for (const SymbolEdge& edge : edges_) {
      if (!grammar_.symbol(edge.symbol).nullable) continue;
      Item next = item;
      next.state = edge.to;
      items.push_back(next);
    }
    if (!rule.IsFinal(item.state)) continue;
    if (item.return_row == kEndOfText) {
      may_end = true;
    } else if (completed.insert({item.return_row, item.return_symbol}).second) {
      if (completed.size() > kMaxCompletions) ThrowLimit("rules that end", kMaxCompletions);
      for (const Waiting& waiting :
           std::ranges::equal_range(rows_[item.return_row].waiting, item.return_symbol, {}, &Waiting::symbol)) {
        items.push_back(waiting.item);
      }
    }
  }
  std::sort(kernel.begin(), kernel.end());
  std::string key(reinterpret_cast<const char*>(kernel.data()), kernel.size() * sizeof(Item));
  key.push_back(may_end ? '\1' : '\0');
  const auto [it, inserted] = ids_.try_emplace(std::move(key), static_cast<RowId>(rows_.size()));
  if (!inserted) return it->second;
  const RowId id = it->second;
  try {
    rows_.emplace_back().may_end = may_end;
    for (const Item& item : kernel) {
      const uint32_t below = item.return_row == kEndOfText ? 0 : rows_[item.return_row].depth + 1;
      rows_[id].depth = std::max(rows_[id].depth, below);
    }
    if (rows_[id].depth > kMaxDepth) {
      throw GrammarLimitError("the text is nested too deeply (more than " + std::to_string(kMaxDepth) + " levels)");
    }
    Predict(id, kernel);
  } catch (...) {
    rows_.resize(id);
    ids_.erase(it);
    throw;
  }
  const Row& row = rows_[id];
  memory_bytes_ += sizeof(Row) + row.waiting.size() * sizeof(Waiting) + it->first.size() + 128 +
                   (row.terminals.size() + row.token_terminals.size()) * sizeof(SymbolId);
  return id;
}

void RowStore::Predict(RowId row, const std::vector<Item>& kernel) {
  std::vector<Item> pending = kernel;
  std::set<Item> seen(kernel.begin(), kernel.end());
  std::vector<Waiting>& waiting = rows_[row].waiting;
  const auto add = [&](const Item& item) {
    if (!seen.insert(item).second) return;
    if (seen.size() > kMaxItems) ThrowLimit("items", kMaxItems);
    pending.push_back(item);
  };
  while (!pending.empty()) {
    const Item item = pending.back();
    pending.pop_back();
    edges_.clear();
    RuleAutomaton& rule = *grammar_.symbol(item.rule).rule;
    rule.AppendEdges(item.state, edges_);
    for (const SymbolEdge& edge : edges_) {
      Item next = item;
      next.state = edge.to;
      const Grammar::Symbol& symbol = grammar_.symbol(edge.symbol);
      if (symbol.rule == nullptr) {
        waiting.push_back({edge.symbol, next});
      } else {
        tail_edges_.clear();
        rule.AppendEdges(edge.to, tail_edges_);
        if (tail_edges_.empty() && rule.IsFinal(edge.to)) {
          add({edge.symbol, 0, item.return_row, item.return_symbol});
        } else {
          waiting.push_back({edge.symbol, next});
          add({edge.symbol, 0, row, edge.symbol});
        }
      }
      if (symbol.nullable) add(next);
    }
  }
  std::ranges::stable_sort(waiting, {}, &Waiting::symbol);
  std::vector<SymbolId>& terminals = rows_[row].terminals;
  for (const Waiting& entry : waiting) {
    const Grammar::Symbol& symbol = grammar_.symbol(entry.symbol);
    if (symbol.rule != nullptr) continue;
    std::vector<SymbolId>& list = symbol.tokens.empty() ? terminals : rows_[row].token_terminals;
    if (list.empty() || list.back() != entry.symbol) list.push_back(entry.symbol);
  }
}

}  // namespace vllm
