// ObjectRule: the members of a JSON object as a RuleAutomaton, from the opening to the closing brace. A member is a
// terminal, which contains the brace or comma before it, the key and the colon, and the symbol of its value.
// Owned by a Grammar; one thread at a time.
//
// Members of properties come in the order of the list, or in any order, each at most once; the others follow them, or
// are between them if the order is free. A key that is not declared may occur more than once, as JSON allows.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/structured_output/grammar/rule_automaton.h"

namespace vllm {

class ObjectRule : public RuleAutomaton {
 public:
  struct Member {
    SymbolId first_key;  // the terminal of the key after the opening brace
    SymbolId next_key;   // the terminal of the key after a comma
    SymbolId value;
    bool is_required = false;
    uint64_t needs = 0;  // bit i: the key is in set i of the keys of which one is needed
  };
  struct Parts {
    SymbolId empty;               // {}
    SymbolId close;               // }
    std::vector<Member> members;  // properties
    std::vector<Member> others;   // other keys
    uint64_t min_properties = 0;
    uint64_t max_properties = UINT64_MAX;
    uint64_t needs = 0;  // a bit per set of keys of which one is needed
    bool any_order = false;
  };

  // REQUIRES: there is at most one need if max_properties is bounded; if there are others, min_properties is at most 1
  // or the number of required members: further keys might be equal.
  explicit ObjectRule(Parts parts);

  bool Restrict(const std::vector<bool>& productive) override;
  void AppendSymbols(std::vector<SymbolId>& symbols) const override;
  void AppendEdges(uint32_t state, std::vector<SymbolEdge>& edges) override;
  bool IsFinal(uint32_t state) override { return state == kEnd; }
  size_t memory_bytes() const override;

 private:
  // States 0 and 1 are the start and the end; the others are positions, before or after a value.
  static constexpr uint32_t kEnd = 1;
  struct Position {
    uint32_t next = 0;        // in order: the first property that may follow; else: number of seen ones
    uint64_t count = 0;       // members that are known to differ, up to the larger bound
    bool has_others = false;  // a key that is not declared was written
    bool is_first = true;     // no member was written
    uint64_t needs = 0;       // that are not met
    std::string seen;         // any order: bit i % 8 of byte i / 8: property i was written
  };
  uint32_t StateOf(const Position& position, SymbolId value);
  void AppendMembers(const Position& position, std::vector<SymbolEdge>& edges);
  bool IsSeen(const Position& position, size_t index) const;
  // Returns the needs that members after this position can meet, or those that required ones meet.
  uint64_t NeedsAfter(const Position& position, bool only_required) const;
  // Whether the object can be completed from here.
  bool CanEnd(const Position& position) const;
  bool MayClose(const Position& position) const;
  uint64_t NumRequiredAfter(const Position& position) const;

  Parts parts_;
  std::vector<bool> is_possible_;  // of the members: the value has a text
  std::vector<bool> is_other_possible_;
  std::vector<uint64_t> required_after_;  // [members + 1]
  std::vector<uint64_t> possible_after_;  // [members + 1]
  struct State {
    Position position;
    SymbolId value;  // kNoValue: after a value
  };
  static constexpr SymbolId kNoValue = UINT32_MAX;
  std::vector<State> states_;
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace vllm
