#include "engine/structured_output/dialects/grammar_tree.h"

#include <optional>
#include <string>
#include <utility>

namespace vllm {
namespace {

using Kind = GrammarTree::Kind;
using NodeId = GrammarTree::NodeId;

// A terminal may have this many parts and alternatives, and all together kMaxTotalParts. Expressions copy those of
// their operands, so longer ones would take quadratic time. What exceeds a limit becomes a rule, with the same texts.
constexpr size_t kMaxParts = 4096;
constexpr size_t kMaxTotalParts = size_t{1} << 22;

// A part of a rule that was lowered.
struct Part {
  std::optional<RegexId> regex;  // a regular expression; otherwise a symbol
  SymbolId symbol = 0;
  size_t num_parts = 1;  // of the regular expression
};

class Lowering {
 public:
  Lowering(GrammarBuilder& builder, const GrammarTree& tree)
      : builder_(builder),
        tree_(tree),
        states_(tree.rules().size(), State::kNew),
        parts_(tree.rules().size()),
        node_parts_(tree.num_nodes()),
        last_visits_(tree.num_nodes(), 0) {}

  SymbolId Lower(NodeId root) {
    Visit(root);
    return Symbol(Of(root));
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kDone };
  struct Frame {
    uint32_t rule;
    std::vector<uint32_t> references;
    size_t next = 0;
  };

  // Returns the rules that occur below `root`. Visits a node once: nested nodes that are shared have exponentially many
  // paths to them.
  std::vector<uint32_t> References(NodeId root) {
    std::vector<uint32_t> references;
    std::vector<NodeId> pending = {root};
    ++num_visits_;
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      if (last_visits_[id] == num_visits_) continue;
      last_visits_[id] = num_visits_;
      const GrammarTree::Node& node = tree_.node(id);
      if (node.kind == Kind::kRule) references.push_back(node.value);
      pending.insert(pending.end(), node.children.begin(), node.children.end());
    }
    return references;
  }

  // Lowers the rules below `root`, each after the rules that it uses. A rule that is used before it is lowered is
  // recursive, and gets its symbol then.
  void Visit(NodeId root) {
    std::vector<Frame> stack;
    stack.push_back({UINT32_MAX, References(root)});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.references.size()) {
        const uint32_t rule = frame.references[frame.next++];
        if (states_[rule] == State::kNew) {
          states_[rule] = State::kOpen;
          stack.push_back({rule, References(tree_.rules()[rule])});
        } else if (states_[rule] == State::kOpen && !parts_[rule]) {
          parts_[rule] = Part{.regex = std::nullopt, .symbol = builder_.AddRule()};
        }
        continue;
      }
      if (frame.rule != UINT32_MAX) Finish(frame.rule);
      stack.pop_back();
    }
  }

  void Finish(uint32_t rule) {
    const Part body = Of(tree_.rules()[rule]);
    states_[rule] = State::kDone;
    if (parts_[rule]) {
      builder_.AddAlternative(parts_[rule]->symbol, {Symbol(body)});
    } else {
      parts_[rule] = body;
    }
  }

  SymbolId Symbol(const Part& part) { return part.regex ? builder_.AddTerminal(*part.regex) : part.symbol; }

  // Calls `make` to make an expression of `num_parts` parts. Returns nullopt if that would exceed a limit.
  template <typename Make>
  std::optional<Part> Regex(size_t num_parts, const Make& make) {
    if (num_parts > kMaxParts || num_parts > kMaxTotalParts - num_total_parts_) return std::nullopt;
    num_total_parts_ += num_parts;
    try {
      return Part{.regex = make(), .num_parts = num_parts};
    } catch (const GrammarLimitError&) {
      return std::nullopt;
    }
  }

  // REQUIRES: the rules that occur below the node have parts.
  Part Of(NodeId id) {
    if (!node_parts_[id]) node_parts_[id] = Compute(tree_.node(id));
    return *node_parts_[id];
  }

  Part Compute(const GrammarTree::Node& node) {
    switch (node.kind) {
      case Kind::kRegex:
        return {.regex = node.value};
      case Kind::kSymbol:
        return {.regex = std::nullopt, .symbol = node.value};
      case Kind::kRule:
        return *parts_[node.value];
      case Kind::kSequence:
        return Sequence(node);
      case Kind::kAlternatives:
        return Alternatives(node);
      case Kind::kRepeat:
        break;
    }
    const Part item = Of(node.children[0]);
    if (item.regex) {
      const auto make = [&] { return builder_.regexes().Repeat(*item.regex, node.min, node.max); };
      if (const std::optional<Part> part = Regex(1, make)) return *part;
    }
    return {.regex = std::nullopt,
            .symbol = builder_.AddRepeat(Symbol(item), GrammarBuilder::kNoSymbol, node.min, node.max)};
  }

  Part Sequence(const GrammarTree::Node& node) {
    std::vector<Part> merged;
    // Neighbors that are regular become one terminal.
    std::vector<RegexId> run;
    size_t num_run_parts = 0;
    const auto end_run = [&] {
      if (run.empty()) return;
      const auto make = [&] { return builder_.regexes().Concat(run); };
      if (const std::optional<Part> part = Regex(num_run_parts, make)) {
        merged.push_back(*part);
      } else {
        for (const RegexId regex : run) merged.push_back({.regex = regex});
      }
      run.clear();
      num_run_parts = 0;
    };
    for (const NodeId child : node.children) {
      const Part part = Of(child);
      if (!part.regex) {
        end_run();
        merged.push_back(part);
        continue;
      }
      if (num_run_parts + part.num_parts > kMaxParts) end_run();
      run.push_back(*part.regex);
      num_run_parts += part.num_parts;
    }
    end_run();
    if (merged.empty()) return {.regex = RegexStore::kEmpty};
    if (merged.size() == 1) return merged[0];
    std::vector<SymbolId> symbols;
    for (const Part& part : merged) symbols.push_back(Symbol(part));
    const SymbolId rule = builder_.AddRule();
    builder_.AddAlternative(rule, std::move(symbols));
    return {.regex = std::nullopt, .symbol = rule};
  }

  Part Alternatives(const GrammarTree::Node& node) {
    std::vector<RegexId> regexes;
    std::vector<SymbolId> symbols;
    size_t num_parts = 0;
    for (const NodeId child : node.children) {
      const Part part = Of(child);
      if (part.regex) {
        regexes.push_back(*part.regex);
        num_parts += part.num_parts;
      } else {
        symbols.push_back(part.symbol);
      }
    }
    const auto make = [&] { return builder_.regexes().Or(regexes); };
    const std::optional<Part> regular = regexes.empty() ? std::nullopt : Regex(num_parts, make);
    if (regular && symbols.empty()) return *regular;
    if (regular) {
      symbols.push_back(Symbol(*regular));
    } else {
      for (const RegexId regex : regexes) symbols.push_back(builder_.AddTerminal(regex));
    }
    return {.regex = std::nullopt, .symbol = builder_.AddChoice(symbols)};
  }

  GrammarBuilder& builder_;
  const GrammarTree& tree_;
  std::vector<State> states_;               // by rule
  std::vector<std::optional<Part>> parts_;  // by rule; set when it is done or known to be recursive
  std::vector<std::optional<Part>> node_parts_;
  std::vector<uint32_t> last_visits_;  // by node: the last call of References that visited it
  uint32_t num_visits_ = 0;
  size_t num_total_parts_ = 0;
};

}  // namespace

GrammarTree::NodeId GrammarTree::Add(Node node) {
  if (nodes_.size() == kMaxNodes) {
    throw GrammarLimitError("the grammar has too many parts (limit " + std::to_string(kMaxNodes) + ")");
  }
  nodes_.push_back(std::move(node));
  return static_cast<NodeId>(nodes_.size() - 1);
}

GrammarTree::NodeId GrammarTree::AddSequence(std::vector<NodeId> parts) {
  return parts.size() == 1 ? parts[0] : Add({.kind = Kind::kSequence, .children = std::move(parts)});
}

GrammarTree::NodeId GrammarTree::AddAlternatives(std::vector<NodeId> alternatives) {
  return alternatives.size() == 1 ? alternatives[0]
                                  : Add({.kind = Kind::kAlternatives, .children = std::move(alternatives)});
}

uint32_t GrammarTree::AddRule() {
  if (rules_.size() == kMaxRules) {
    throw GrammarLimitError("the grammar has too many rules (limit " + std::to_string(kMaxRules) + ")");
  }
  rules_.push_back(0);
  return static_cast<uint32_t>(rules_.size() - 1);
}

SymbolId AddGrammarTree(GrammarBuilder& builder, const GrammarTree& tree, GrammarTree::NodeId root) {
  return Lowering(builder, tree).Lower(root);
}

}  // namespace vllm
