#include "engine/structured_output/byte_grammar.h"

#include <algorithm>
#include <string>

#include "engine/config/errors.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {

ByteGrammarRule ByteGrammarBuilder::AddRule() {
  const ByteGrammarState start = AddState();
  const ByteGrammarState end = AddState();
  rules_.push_back({start, end});
  return static_cast<ByteGrammarRule>(rules_.size() - 1);
}

ByteGrammarState ByteGrammarBuilder::AddState() {
  if (num_states_ == kMaxStates) {
    throw RequestError("the grammar is too large (more than " + std::to_string(kMaxStates) + " states)");
  }
  return static_cast<ByteGrammarState>(num_states_++);
}

void ByteGrammarBuilder::AddBytes(ByteGrammarState from, uint8_t low, uint8_t high, ByteGrammarState to) {
  edges_.push_back({Edge::Kind::kBytes, low, high, from, to, 0});
}

void ByteGrammarBuilder::AddEmpty(ByteGrammarState from, ByteGrammarState to) {
  edges_.push_back({Edge::Kind::kEmpty, 0, 0, from, to, 0});
}

void ByteGrammarBuilder::AddCall(ByteGrammarState from, ByteGrammarRule rule, ByteGrammarState to) {
  edges_.push_back({Edge::Kind::kCall, 0, 0, from, to, rule});
}

ByteGrammarState ByteGrammarBuilder::AddLiteral(ByteGrammarState from, std::string_view bytes) {
  for (const char c : bytes) {
    const ByteGrammarState next = AddState();
    AddBytes(from, static_cast<uint8_t>(c), static_cast<uint8_t>(c), next);
    from = next;
  }
  return from;
}

void ByteGrammarBuilder::AddSequence(ByteGrammarState from, std::string_view low, std::string_view high,
                                     ByteGrammarState to) {
  for (size_t i = 0; i < low.size(); ++i) {
    const ByteGrammarState next = i + 1 == low.size() ? to : AddState();
    AddBytes(from, static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i]), next);
    from = next;
  }
}

void ByteGrammarBuilder::AddCodePoints(ByteGrammarState from, char32_t low, char32_t high, ByteGrammarState to) {
  // Each range below has sequences of one length, and either one prefix or all continuation bytes after a byte, so that
  // it is a product of byte ranges. Splitting at multiples of 64, 64^2 and 64^3 gives such ranges.
  struct Range {
    char32_t low, high;
  };
  static constexpr char32_t kLengthEnds[] = {0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF, 0x10FFFF};
  std::vector<Range> pending;
  for (const char32_t end : kLengthEnds) {
    if (low > high) break;
    if (low > end) continue;
    // D800..DFFF are surrogates, which UTF-8 does not encode.
    if (end != 0xDFFF) pending.push_back({low, std::min(high, end)});
    low = end + 1;
  }
  while (!pending.empty()) {
    const Range range = pending.back();
    pending.pop_back();
    bool split = false;
    for (int shift = 6; shift <= 18 && !split && range.low >= 0x80; shift += 6) {
      const char32_t mask = (char32_t{1} << shift) - 1;
      if ((range.low & ~mask) == (range.high & ~mask)) break;
      if ((range.low & mask) != 0) {
        pending.push_back({range.low, range.low | mask});
        pending.push_back({(range.low | mask) + 1, range.high});
        split = true;
      } else if ((range.high & mask) != mask) {
        pending.push_back({range.low, (range.high & ~mask) - 1});
        pending.push_back({range.high & ~mask, range.high});
        split = true;
      }
    }
    if (split) continue;
    std::string first, last;
    tokenizer::AppendCodePoint(range.low, first);
    tokenizer::AppendCodePoint(range.high, last);
    AddSequence(from, first, last, to);
  }
}

ByteGrammar ByteGrammarBuilder::Finish() {
  ByteGrammar grammar;
  std::stable_sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) { return a.from < b.from; });
  grammar.states_.resize(num_states_ + 1);
  size_t next = 0;
  for (size_t state = 0; state <= num_states_; ++state) {
    grammar.states_[state].bytes = static_cast<uint32_t>(grammar.bytes_.size());
    grammar.states_[state].calls = static_cast<uint32_t>(grammar.calls_.size());
    grammar.states_[state].empty = static_cast<uint32_t>(grammar.empty_.size());
    for (; next < edges_.size() && edges_[next].from == state; ++next) {
      const Edge& edge = edges_[next];
      if (edge.kind == Edge::Kind::kBytes) grammar.bytes_.push_back({edge.low, edge.high, edge.to});
      if (edge.kind == Edge::Kind::kCall) grammar.calls_.push_back({edge.rule, edge.to});
      if (edge.kind == Edge::Kind::kEmpty) grammar.empty_.push_back(edge.to);
    }
  }
  for (const Rule& rule : rules_) {
    grammar.rule_starts_.push_back(rule.start);
    grammar.states_[rule.end].is_final = true;
  }
  ComputeHeights(grammar);
  rules_.clear();
  edges_.clear();
  num_states_ = 0;
  return grammar;
}

// Sets the heights in ascending order, as Knuth's generalization of Dijkstra's algorithm does, because the height of a
// state is at least that of each state that it depends on.
void ByteGrammarBuilder::ComputeHeights(ByteGrammar& grammar) const {
  std::vector<std::vector<uint32_t>> edges_to(num_states_);             // [state] -> edges that end there
  std::vector<std::vector<uint32_t>> calls_of(rules_.size());           // [rule] -> edges that call it
  std::vector<ByteGrammarRule> rule_of_start(num_states_, UINT32_MAX);  // [state] -> the rule that begins there
  for (ByteGrammarRule rule = 0; rule < rules_.size(); ++rule) rule_of_start[rules_[rule].start] = rule;
  for (uint32_t i = 0; i < edges_.size(); ++i) {
    edges_to[edges_[i].to].push_back(i);
    if (edges_[i].kind == Edge::Kind::kCall) calls_of[edges_[i].rule].push_back(i);
  }
  std::vector<std::vector<ByteGrammarState>> pending(ByteGrammar::kMaxDepth + 1);  // [height]
  for (const Rule& rule : rules_) pending[0].push_back(rule.end);

  const auto use = [&](const Edge& edge) {
    const uint16_t rest = grammar.HeightOf(edge.to);
    if (rest == ByteGrammar::kUnreachable) return;
    uint16_t height = rest;
    if (edge.kind == Edge::Kind::kCall) {
      const uint16_t called = grammar.HeightOf(rules_[edge.rule].start);
      if (called >= ByteGrammar::kMaxDepth) return;
      // The call at the end of a rule replaces the rule, see ByteGrammarAutomaton.
      const bool is_last = grammar.IsFinal(edge.to);
      height = std::max<uint16_t>(rest, static_cast<uint16_t>(called + (is_last ? 0 : 1)));
    }
    if (height < grammar.HeightOf(edge.from)) pending[height].push_back(edge.from);
  };
  for (uint16_t height = 0; height <= ByteGrammar::kMaxDepth; ++height) {
    while (!pending[height].empty()) {
      const ByteGrammarState state = pending[height].back();
      pending[height].pop_back();
      if (grammar.states_[state].height <= height) continue;
      grammar.states_[state].height = height;
      for (const uint32_t edge : edges_to[state]) use(edges_[edge]);
      if (rule_of_start[state] == UINT32_MAX) continue;
      for (const uint32_t edge : calls_of[rule_of_start[state]]) use(edges_[edge]);
    }
  }
}

}  // namespace vllm
