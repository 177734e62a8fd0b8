// GrammarTree: the rules of a grammar as people write them, with groups and repetitions in them. The front ends of the
// dialects make one, and AddGrammarTree lowers it to terminals and rules. A node may be a child of several others. A
// plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/structured_output/grammar/grammar.h"

namespace vllm {

class GrammarTree {
 public:
  using NodeId = uint32_t;

  // Limits. A function that would exceed one throws GrammarLimitError.
  static constexpr size_t kMaxNodes = 1'000'000;
  static constexpr size_t kMaxRules = 50'000;
  // The deepest nesting of groups that a front end may make.
  static constexpr int kMaxDepth = 250;

  enum class Kind : uint8_t { kRegex, kSymbol, kRule, kSequence, kAlternatives, kRepeat };
  struct Node {
    Kind kind = Kind::kSequence;
    uint32_t value = 0;            // kRegex: a RegexId. kSymbol: a SymbolId. kRule: an index of rules()
    uint32_t min = 0, max = 0;     // kRepeat
    std::vector<NodeId> children;  // kSequence, kAlternatives; one for kRepeat
  };

  NodeId Add(Node node);
  NodeId AddRegex(RegexId regex) { return Add({.kind = Kind::kRegex, .value = regex, .children = {}}); }
  NodeId AddSymbol(SymbolId symbol) { return Add({.kind = Kind::kSymbol, .value = symbol, .children = {}}); }
  NodeId AddReference(uint32_t rule) { return Add({.kind = Kind::kRule, .value = rule, .children = {}}); }
  NodeId AddSequence(std::vector<NodeId> parts);
  NodeId AddAlternatives(std::vector<NodeId> alternatives);
  NodeId AddRepeat(NodeId item, uint32_t min, uint32_t max) {
    return Add({.kind = Kind::kRepeat, .min = min, .max = max, .children = {item}});
  }
  // Returns the index of a new rule without a body.
  uint32_t AddRule();
  void SetRule(uint32_t rule, NodeId body) { rules_[rule] = body; }

  size_t num_nodes() const { return nodes_.size(); }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const std::vector<NodeId>& rules() const { return rules_; }  // the bodies

 private:
  std::vector<Node> nodes_;
  std::vector<NodeId> rules_;
};

// Adds the rules that `root` needs and returns the symbol of its texts. Parts that do not need recursion or special
// tokens become one terminal each, because matching is fast inside a terminal. REQUIRES: every rule that `root` uses
// has a body. Throws GrammarLimitError.
SymbolId AddGrammarTree(GrammarBuilder& builder, const GrammarTree& tree, GrammarTree::NodeId root);

}  // namespace vllm
