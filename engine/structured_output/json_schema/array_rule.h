// ArrayRule: the elements of a JSON array as a RuleAutomaton, from the opening to the closing bracket. Owned by a
// Grammar; one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/structured_output/grammar/rule_automaton.h"

namespace vllm {

class ArrayRule : public RuleAutomaton {
 public:
  static constexpr SymbolId kNoSymbol = UINT32_MAX;
  // The symbols of the elements at one index.
  struct Element {
    SymbolId any = kNoSymbol;      // every value that is allowed
    SymbolId inside = kNoSymbol;   // those that count for `contains`
    SymbolId outside = kNoSymbol;  // those that do not; not used without max_contains
  };
  struct Parts {
    SymbolId open, close, comma, empty;  // empty: []
    std::vector<Element> prefix;
    Element items;  // after the prefix
    uint64_t min_items = 0;
    uint64_t max_items = UINT64_MAX;
    bool has_contains = false;
    uint64_t min_contains = 0;
    uint64_t max_contains = UINT64_MAX;
    // If not empty, the elements are different ones of these symbols, each of one value.
    std::vector<SymbolId> unique_values;
    // If not empty, there are no more elements than this, and those at an index are the unique_values that it has.
    // REQUIRES: then, min_items is at most 1.
    std::vector<std::vector<bool>> unique_by_index;
  };

  explicit ArrayRule(Parts parts);

  bool Restrict(const std::vector<bool>& productive) override;
  void AppendSymbols(std::vector<SymbolId>& symbols) const override;
  void AppendEdges(uint32_t state, std::vector<SymbolEdge>& edges) override;
  bool IsFinal(uint32_t state) override { return state == kEnd; }
  size_t memory_bytes() const override;

 private:
  // States 0 and 1 are the start and the end; 2 is after the opening bracket.
  static constexpr uint32_t kEnd = 1;
  struct Position {
    uint64_t count = 0;      // elements, up to where counting no longer matters
    uint64_t contained = 0;  // of those that count for `contains`, up to the bound
    bool needs_comma = false;
    std::string seen;  // of unique_values
  };
  uint32_t StateOf(const Position& position);
  const Element& ElementAt(uint64_t index) const {
    return index < parts_.prefix.size() ? parts_.prefix[index] : parts_.items;
  }
  bool IsProductive(SymbolId symbol) const {
    return symbol != kNoSymbol && std::ranges::binary_search(productive_, symbol);
  }
  bool CanEnd(const Position& position) const;
  bool MayClose(const Position& position) const;
  void AppendElements(const Position& position, std::vector<SymbolEdge>& edges);

  Parts parts_;
  std::vector<SymbolId> productive_;  // those of the elements, sorted
  uint64_t max_length_ = 0;           // how many elements can follow each other
  std::vector<Position> states_;
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace vllm
