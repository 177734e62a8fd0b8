// Which bytes have equal derivatives. The members of RegexStore that regex_store.cc does not define.
#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

void RegexStore::SplitByDerivative(RegexId id, BytePartition& partition) {
  ++visit_;
  last_visits_.resize(nodes_.size(), 0);
  std::vector<RegexId> pending;
  const auto visit = [&](RegexId part) {
    if (nodes_[part].kind == Kind::kBytes) {
      partition.Split(sets_[nodes_[part].a]);
    } else if (std::exchange(last_visits_[part], visit_) != visit_) {
      pending.push_back(part);
    }
  };
  visit(id);
  while (!pending.empty()) {
    const Node& node = nodes_[pending.back()];
    pending.pop_back();
    switch (node.kind) {
      case Kind::kAutomaton:
        for (const ByteSet& set : automaton_classes_[node.a]) partition.Split(set);
        break;
      case Kind::kConcat:
        visit(node.a);
        if (nodes_[node.a].nullable) visit(node.b);
        break;
      case Kind::kOr:
      case Kind::kAnd:
        for (const RegexId operand : OperandsOf(node)) visit(operand);
        break;
      case Kind::kNot:
      case Kind::kRepeat:
        visit(node.a);
        break;
      default:
        break;
    }
  }
}

std::vector<uint8_t> RegexStore::FirstBytes(RegexId id) {
  BytePartition partition(representatives_);
  SplitByDerivative(id, partition);
  return partition.Representatives();
}

}  // namespace vllm
