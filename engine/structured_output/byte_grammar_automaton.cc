#include "engine/structured_output/byte_grammar_automaton.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace vllm {
namespace {

[[noreturn]] void TooAmbiguous(size_t limit, const char* what) {
  throw std::runtime_error("the grammar is too ambiguous here (more than " + std::to_string(limit) + " " + what + ")");
}

}  // namespace

ByteGrammarAutomaton::ByteGrammarAutomaton(ByteGrammar grammar, std::shared_ptr<const VocabTrie> trie)
    : grammar_(std::move(grammar)), trie_(std::move(trie)), path_(trie_->max_depth() + 1) {
  Clear();
}

void ByteGrammarAutomaton::Clear() {
  ++generation_;
  states_.clear();
  state_ids_.clear();
  stacks_.assign(1, {0, 0, 0});
  stack_ids_.clear();
  num_masks_ = 0;
  std::vector<Configuration> start = {{grammar_.start(), 0}};
  if (generates_text()) Close(start);  // state 0
}

// In Push and Intern, the vector grows first, so that a failing allocation leaves no index without an element.
uint32_t ByteGrammarAutomaton::Push(ByteGrammarState to, uint32_t below) {
  const uint64_t key = uint64_t{to} << 32 | below;
  if (stacks_.size() == stacks_.capacity()) stacks_.reserve(2 * stacks_.size());
  const auto [it, inserted] = stack_ids_.try_emplace(key, static_cast<uint32_t>(stacks_.size()));
  if (inserted) {
    if (stacks_.size() == kMaxStacks) {
      stack_ids_.erase(it);
      TooAmbiguous(kMaxStacks, "stacks");
    }
    stacks_.push_back({to, below, static_cast<uint16_t>(stacks_[below].depth + 1)});
  }
  return it->second;
}

int32_t ByteGrammarAutomaton::Close(std::vector<Configuration>& pending) {
  std::vector<Configuration> seen;  // sorted
  std::vector<Configuration> readers;
  bool may_end = false;
  // Adds a configuration unless the end of the text could not be reached from it within the depth limit.
  const auto add = [&](ByteGrammarState state, uint32_t stack) {
    if (stacks_[stack].depth + grammar_.HeightOf(state) <= ByteGrammar::kMaxDepth) pending.push_back({state, stack});
  };
  while (!pending.empty()) {
    const Configuration current = pending.back();
    pending.pop_back();
    const auto at = std::lower_bound(seen.begin(), seen.end(), current);
    if (at != seen.end() && *at == current) continue;
    seen.insert(at, current);
    if (seen.size() > kMaxConfigurations) TooAmbiguous(kMaxConfigurations, "configurations");
    if (grammar_.IsFinal(current.state)) {
      if (current.stack == 0) {
        may_end = true;
      } else {
        const Stack& top = stacks_[current.stack];
        add(top.to, top.below);
      }
      continue;
    }
    if (!grammar_.BytesOf(current.state).empty()) readers.push_back(current);
    for (const ByteGrammarState to : grammar_.EmptyEdgesOf(current.state)) add(to, current.stack);
    for (const CallEdge& call : grammar_.CallsOf(current.state)) {
      if (grammar_.IsFinal(call.to)) {
        add(grammar_.StartOf(call.rule), current.stack);
      } else if (stacks_[current.stack].depth < ByteGrammar::kMaxDepth &&
                 stacks_[current.stack].depth + grammar_.HeightOf(call.to) <= ByteGrammar::kMaxDepth) {
        add(grammar_.StartOf(call.rule), Push(call.to, current.stack));
      }
    }
  }
  if (readers.empty() && !may_end) return kDead;
  std::sort(readers.begin(), readers.end());
  return Intern(std::move(readers), may_end);
}

int32_t ByteGrammarAutomaton::Intern(std::vector<Configuration> configurations, bool may_end) {
  std::string key(reinterpret_cast<const char*>(configurations.data()), configurations.size() * sizeof(Configuration));
  key.push_back(may_end ? 1 : 0);
  if (states_.size() == states_.capacity()) states_.reserve(std::max<size_t>(16, 2 * states_.size()));
  const auto [it, inserted] = state_ids_.try_emplace(std::move(key), static_cast<int32_t>(states_.size()));
  if (inserted) {
    if (states_.size() == kMaxStates) {
      state_ids_.erase(it);
      TooAmbiguous(kMaxStates, "states");
    }
    State& state = states_.emplace_back();
    state.configurations = std::move(configurations);
    state.may_end = may_end;
  }
  return it->second;
}

int32_t ByteGrammarAutomaton::Step(int32_t state, uint8_t byte) {
  {
    std::unique_ptr<std::array<int32_t, 256>>& next = states_[static_cast<size_t>(state)].next;
    if (next == nullptr) {
      next = std::make_unique<std::array<int32_t, 256>>();
      next->fill(kUnknown);
    } else if ((*next)[byte] != kUnknown) {
      return (*next)[byte];
    }
  }
  std::vector<Configuration> pending;
  for (const Configuration& configuration : states_[static_cast<size_t>(state)].configurations) {
    for (const ByteEdge& edge : grammar_.BytesOf(configuration.state)) {
      if (byte < edge.low || byte > edge.high) continue;
      if (stacks_[configuration.stack].depth + grammar_.HeightOf(edge.to) > ByteGrammar::kMaxDepth) continue;
      pending.push_back({edge.to, configuration.stack});
    }
  }
  const int32_t to = pending.empty() ? kDead : Close(pending);
  (*states_[static_cast<size_t>(state)].next)[byte] = to;
  return to;
}

int32_t ByteGrammarAutomaton::StateAt(Position& position) {
  // There is no state if an allocation failed in Clear.
  if (states_.empty() || states_.size() > max_states_ || stacks_.size() > kMaxStacks / 2) Clear();
  if (position.generation != generation_) {
    int32_t state = 0;
    for (const char c : position.text) state = Step(state, static_cast<uint8_t>(c));
    max_states_ = std::max(max_states_, 2 * states_.size());
    position.state = state;
    position.generation = generation_;
  }
  return position.state;
}

bool ByteGrammarAutomaton::Advance(Position& position, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (!generates_text()) return false;
  int32_t state = StateAt(position);
  for (const char c : bytes) {
    state = Step(state, static_cast<uint8_t>(c));
    if (state == kDead) return false;
  }
  position.text += bytes;
  position.state = state;
  return true;
}

bool ByteGrammarAutomaton::MayEnd(Position& position) {
  const std::lock_guard lock(mutex_);
  return generates_text() && states_[static_cast<size_t>(StateAt(position))].may_end;
}

std::shared_ptr<const TokenBitmask> ByteGrammarAutomaton::AllowedTokens(Position& position) {
  const std::lock_guard lock(mutex_);
  auto mask = std::make_shared<TokenBitmask>(static_cast<size_t>((trie_->vocab_size() + 31) / 32), 0);
  if (!generates_text()) return mask;
  const auto start = static_cast<size_t>(StateAt(position));
  if (states_[start].allowed != nullptr) return states_[start].allowed;
  path_[0] = static_cast<int32_t>(start);
  for (const TokenTrie* tokens : {&trie_->slices().plain(), &trie_->slices().rest()}) {
    const std::span<const TokenTrie::Node> nodes = tokens->nodes();
    for (size_t i = 0; i < nodes.size();) {
      const TokenTrie::Node& node = nodes[i];
      const int32_t state = Step(path_[node.depth - 1u], node.byte);
      if (state == kDead) {
        i += node.subtree_size;
        continue;
      }
      path_[node.depth] = state;
      SetBits(*mask, tokens->TokensOf(i));
      ++i;
    }
  }
  if (num_masks_ == kKeptMasks) {
    for (State& state : states_) state.allowed = nullptr;
    num_masks_ = 0;
  }
  states_[start].allowed = mask;
  ++num_masks_;
  return mask;
}

}  // namespace vllm
