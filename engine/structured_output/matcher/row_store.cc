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
  return_rows_.clear();
  returns_.clear();
  memory_bytes_ = 0;
}

size_t RowStore::ItemSet::HashOf(const Item& item) {
  uint64_t hash = (uint64_t{item.rule} << 32 | item.state) * 0x9E3779B97F4A7C15u;
  hash = (hash ^ hash >> 29 ^ (uint64_t{item.return_row} << 32 | item.return_symbol)) * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(hash ^ hash >> 32);
}

void RowStore::ItemSet::Clear() {
  items_.clear();
  slots_.assign(32, 0);
}

void RowStore::ItemSet::Add(const Item& item) {
  size_t slot = HashOf(item) & (slots_.size() - 1);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    if (items_[slots_[slot] - 1] == item) return;
  }
  if (items_.size() == kMaxItems) ThrowLimit("items", kMaxItems);
  items_.push_back(item);
  slots_[slot] = static_cast<uint32_t>(items_.size());
  if (items_.size() * 2 < slots_.size()) return;
  slots_.assign(slots_.size() * 4, 0);
  for (size_t i = 0; i < items_.size(); ++i) {
    slot = HashOf(items_[i]) & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

std::span<const RowStore::Waiting> RowStore::WaitingFor(RowId row, SymbolId symbol) const {
  const std::vector<Waiting>& waiting = rows_[row].waiting;
  const auto first = std::ranges::lower_bound(waiting, symbol, {}, &Waiting::symbol);
  auto last = first;
  while (last != waiting.end() && last->symbol == symbol) ++last;
  return {first, last};
}

uint32_t RowStore::DepthBelow(RowId row, SymbolId symbol) const {
  // The rules that one row predicts count as one. Those below have returned through ReturnOf.
  uint32_t depth = 0;
  std::vector<SymbolId> symbols = {symbol};
  std::set<SymbolId> seen = {symbol};
  for (size_t i = 0; i < symbols.size(); ++i) {
    for (const Waiting& entry : WaitingFor(row, symbols[i])) {
      const Item& item = entry.item;
      if (item.return_row == kEndOfText) continue;
      if (item.return_row != row) {
        depth = std::max(depth, returns_.at(KeyOf(item.return_row, item.return_symbol)).depth);
      } else if (seen.insert(item.return_symbol).second) {
        symbols.push_back(item.return_symbol);
      }
    }
  }
  return depth + 1;
}

RowStore::Return RowStore::ReturnOf(RowId row, SymbolId symbol) {
  if (row == kEndOfText) return {};
  std::set<SymbolId> open;
  std::vector<SymbolId> pending = {symbol};
  while (!pending.empty()) {
    const SymbolId next = pending.back();
    if (returns_.contains(KeyOf(row, next))) {
      pending.pop_back();
      continue;
    }
    const std::span<const Waiting> waiting = WaitingFor(row, next);
    if (open.insert(next).second) {
      // First those that this one returns to in the same row. Left recursion is a cycle of them.
      for (const Waiting& entry : waiting) {
        const Item& item = entry.item;
        if (item.return_row == row && !open.contains(item.return_symbol)) pending.push_back(item.return_symbol);
      }
      if (pending.back() != next) continue;
    }
    const uint32_t depth = DepthBelow(row, next);
    std::vector<Waiting> same(waiting.begin(), waiting.end());
    for (Waiting& entry : same) {
      const auto known = returns_.find(KeyOf(entry.item.return_row, entry.item.return_symbol));
      if (known != returns_.end()) entry.item.return_row = known->second.row;
    }
    std::string key(reinterpret_cast<const char*>(same.data()), same.size() * sizeof(Waiting));
    key.append(reinterpret_cast<const char*>(&depth), sizeof depth);
    memory_bytes_ += key.size() + 256;
    Return& result = returns_.emplace(KeyOf(row, next), Return{row, depth}).first->second;
    result.row = return_rows_.try_emplace(std::move(key), row).first->second;
  }
  return returns_.at(KeyOf(row, symbol));
}

RowStore::RowId RowStore::Start() {
  items_.Clear();
  items_.Add({grammar_.start(), 0, kEndOfText, grammar_.start()});
  return Finish();
}

RowStore::RowId RowStore::Scan(std::span<const Reading> readings) {
  items_.Clear();
  for (const Reading& reading : readings) {
    for (const SymbolId terminal : reading.terminals) {
      for (const Waiting& waiting : WaitingFor(reading.row, terminal)) items_.Add(waiting.item);
    }
  }
  return Finish();
}

RowStore::RowId RowStore::Finish() {
  std::set<std::pair<RowId, SymbolId>> completed;
  std::vector<Item> kernel;
  uint32_t depth = 0;
  bool may_end = false;
  for (size_t i = 0; i < items_.items().size(); ++i) {
    const Item item = items_.items()[i];
    edges_.clear();
    RuleAutomaton& rule = *grammar_.symbol(item.rule).rule;
    rule.AppendEdges(item.state, edges_);
    if (!edges_.empty()) {
      kernel.push_back(item);
      const Return back = ReturnOf(item.return_row, item.return_symbol);
      kernel.back().return_row = back.row;
      depth = std::max(depth, back.depth);
    }
    for (const SymbolEdge& edge : edges_) {
      if (!grammar_.symbol(edge.symbol).nullable) continue;
      Item next = item;
      next.state = edge.to;
      items_.Add(next);
    }
    if (!rule.IsFinal(item.state)) continue;
    // An item in a final state continues the items that wait for its rule.
    if (item.return_row == kEndOfText) {
      may_end = true;
    } else if (completed.insert({item.return_row, item.return_symbol}).second) {
      if (completed.size() > kMaxCompletions) ThrowLimit("rules that end", kMaxCompletions);
      for (const Waiting& waiting : WaitingFor(item.return_row, item.return_symbol)) items_.Add(waiting.item);
    }
  }
  std::sort(kernel.begin(), kernel.end());
  kernel.erase(std::unique(kernel.begin(), kernel.end()), kernel.end());
  std::string key(reinterpret_cast<const char*>(kernel.data()), kernel.size() * sizeof(Item));
  key.push_back(may_end ? '\1' : '\0');
  const auto [it, inserted] = ids_.try_emplace(std::move(key), static_cast<RowId>(rows_.size()));
  if (!inserted) return it->second;
  const RowId id = it->second;
  try {
    rows_.emplace_back().may_end = may_end;
    if (depth > kMaxDepth) {
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
  items_.Clear();
  for (const Item& item : kernel) items_.Add(item);
  std::vector<Waiting>& waiting = rows_[row].waiting;
  for (size_t i = 0; i < items_.items().size(); ++i) {
    const Item item = items_.items()[i];
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
          items_.Add({edge.symbol, 0, item.return_row, item.return_symbol});
        } else {
          waiting.push_back({edge.symbol, next});
          items_.Add({edge.symbol, 0, row, edge.symbol});
        }
      }
      if (symbol.nullable) items_.Add(next);
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
