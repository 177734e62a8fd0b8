// The two kinds of RuleAutomaton that need only the symbols: alternatives that are sequences, and repetition.
// Owned by a Grammar; one thread at a time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/structured_output/grammar/rule_automaton.h"

namespace vllm {

// Alternatives, each a sequence of symbols.
class AlternativesRule : public RuleAutomaton {
 public:
  AlternativesRule() = default;
  explicit AlternativesRule(std::vector<std::vector<SymbolId>> alternatives) : alternatives_(std::move(alternatives)) {}

  bool Restrict(const std::vector<bool>& productive) override;
  void AppendSymbols(std::vector<SymbolId>& symbols) const override;
  void AppendEdges(uint32_t state, std::vector<SymbolEdge>& edges) override;
  bool IsFinal(uint32_t state) override { return state == 0 ? has_empty_ : symbols_[state] == kEnd; }
  // Each alternative is stored twice.
  size_t memory_bytes() const override {
    return sizeof(*this) + alternatives_.size() * 40 + (2 * symbols_.size() + starts_.size()) * sizeof(SymbolId);
  }

 private:
  static constexpr SymbolId kEnd = UINT32_MAX;
  std::vector<std::vector<SymbolId>> alternatives_;
  // The productive alternatives, each ended by kEnd. State i > 0 is before symbols_[i]; entry 0 is not used.
  std::vector<SymbolId> symbols_ = {kEnd};
  std::vector<uint32_t> starts_;
  bool has_empty_ = false;
};

// min to max texts of one symbol, with separators if separator is not UINT32_MAX.
class RepeatRule : public RuleAutomaton {
 public:
  RepeatRule(SymbolId item, SymbolId separator, uint32_t min, uint32_t max)
      : item_(item), separator_(separator), min_(min), max_(max) {}

  bool Restrict(const std::vector<bool>& productive) override;
  void AppendSymbols(std::vector<SymbolId>& symbols) const override;
  void AppendEdges(uint32_t state, std::vector<SymbolEdge>& edges) override;
  bool IsFinal(uint32_t state) override;
  size_t memory_bytes() const override { return sizeof(*this); }

 private:
  // State 2n follows n texts of the item, state 2n + 1 the separator after them. Without a limit, n stops growing at
  // min_, or at 1.
  static constexpr uint32_t kNone = UINT32_MAX;
  SymbolId item_, separator_;
  uint32_t min_, max_;
  bool has_items_ = false;       // an item has a text
  bool has_separators_ = false;  // a separator has one
};

}  // namespace vllm
