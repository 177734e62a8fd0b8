// RowStore: the rows of an Earley parser for one Grammar. A row describes a position between two
// terminals of a text: the open rules, the state of each, and where each returns to. Positions with the same open rules
// share one row, so a list of any length needs few rows, and all texts of a grammar share them.
// Owned by a GrammarAutomaton; one thread at a time.
//
// Invariant 1: an item that is predicted by the last symbol of a rule returns where the rule returns (a tail call), so
// right recursion does not make new rows (the effect of Leo, 1991).
// Invariant 2: of the rows in which the same items expect a symbol, kernels return to the first one. A rule whose last
// part may be empty stays open while the next element of a list begins, so that each element would make new rows.
// Invariant 3: symbols that have the empty text are also skipped when they are predicted (Aycock and Horspool, 2002),
// so no rule ends in the row where it began.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/structured_output/grammar/grammar.h"

namespace vllm {

class RowStore {
 public:
  using RowId = uint32_t;

  // The most items of one row, and the most levels of rules that are open. A text that needs more is not allowed.
  static constexpr size_t kMaxItems = 65'536;
  static constexpr uint32_t kMaxDepth = 512;
  // The most rules that may end at one position.
  static constexpr size_t kMaxCompletions = 65'536;

  // `grammar` must outlive the store. REQUIRES: the start symbol is productive.
  explicit RowStore(Grammar& grammar) : grammar_(grammar) {}

  // Returns the row of the start of the text. Throws GrammarLimitError.
  RowId Start();
  // Terminals that end at one position of the text, and the row where they began.
  struct Reading {
    RowId row;
    std::span<const SymbolId> terminals;
  };
  // Returns the row of a position, from all readings that end there. Throws GrammarLimitError.
  // REQUIRES: each of the terminals is expected at its row.
  RowId Scan(std::span<const Reading> readings);

  // The terminals that are expected at the row: regular expressions, then special tokens; each ascending.
  std::span<const SymbolId> Terminals(RowId row) const { return rows_[row].terminals; }
  std::span<const SymbolId> TokenTerminals(RowId row) const { return rows_[row].token_terminals; }
  // Returns the number of places in rules where a symbol is expected.
  size_t NumItems(RowId row) const { return rows_[row].waiting.size(); }
  bool MayEnd(RowId row) const { return rows_[row].may_end; }

  size_t num_rows() const { return rows_.size(); }
  size_t memory_bytes() const { return memory_bytes_; }
  void Clear();

 private:
  // An open rule in a state. At its end, the items of return_row that expect return_symbol continue.
  struct Item {
    SymbolId rule = 0;
    uint32_t state = 0;
    RowId return_row = 0;
    SymbolId return_symbol = 0;
    auto operator<=>(const Item&) const = default;
  };
  // A set of items in the order in which they were added.
  class ItemSet {
   public:
    void Clear();
    // Throws GrammarLimitError if there are more than kMaxItems.
    void Add(const Item& item);
    const std::vector<Item>& items() const { return items_; }

   private:
    static size_t HashOf(const Item& item);
    std::vector<Item> items_;
    std::vector<uint32_t> slots_;  // a hash table of 1 + the index of an item, or 0; at most half full
  };
  // The item that continues after `symbol`.
  struct Waiting {
    SymbolId symbol;
    Item item;
  };
  struct Row {
    std::vector<Waiting> waiting;  // ascending by symbol
    std::vector<SymbolId> terminals;
    std::vector<SymbolId> token_terminals;
    bool may_end = false;
  };
  // Stands for the end of the text as a row to return to.
  static constexpr RowId kEndOfText = UINT32_MAX;

  std::span<const Waiting> WaitingFor(RowId row, SymbolId symbol) const;
  // Completes the rules of items_ that end, and returns the row of the others.
  RowId Finish();
  // Where an item returns that would return to `row`, and the number of open rules below it. Both are functions of the
  // items that expect the symbol, so the limit of depth depends on the text only.
  struct Return {
    RowId row = kEndOfText;
    uint32_t depth = 0;
  };
  Return ReturnOf(RowId row, SymbolId symbol);
  uint32_t DepthBelow(RowId row, SymbolId symbol) const;
  static uint64_t KeyOf(RowId row, SymbolId symbol) { return uint64_t{row} << 32 | symbol; }
  // Adds what the items of the row predict.
  void Predict(RowId row, const std::vector<Item>& kernel);

  Grammar& grammar_;
  std::vector<Row> rows_;
  std::unordered_map<std::string, RowId> ids_;          // by kernel
  std::unordered_map<std::string, RowId> return_rows_;  // by the items that expect a symbol
  std::unordered_map<uint64_t, Return> returns_;        // by KeyOf
  // Scratch.
  ItemSet items_;
  std::vector<SymbolEdge> edges_;
  std::vector<SymbolEdge> tail_edges_;
  size_t memory_bytes_ = 0;
};

}  // namespace vllm
