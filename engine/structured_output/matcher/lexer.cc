#include "engine/structured_output/matcher/lexer.h"

#include <algorithm>
#include <utility>

namespace vllm {

Lexer::Lexer(Grammar& grammar) : grammar_(grammar), num_regexes_(grammar.regexes().size()) {
  Clear();
  classes_ = grammar.regexes().byte_classes();
  num_classes_ = grammar.regexes().num_byte_classes();
  for (size_t byte = 256; byte-- > 0;) {
    representatives_[classes_[byte]] = static_cast<uint8_t>(byte);
    ++class_sizes_[classes_[byte]];
  }
}

void Lexer::Clear() {
  states_.clear();
  next_.clear();
  groups_.clear();
  ids_.clear();
  memory_bytes_ = 0;
  grammar_.regexes().Truncate(num_regexes_);
  first_regex_bytes_ = grammar_.regexes().memory_bytes();
}

Lexer::StateId Lexer::Start(std::span<const SymbolId> terminals) {
  std::vector<Rest> rests;
  for (const SymbolId terminal : terminals) rests.push_back({terminal, grammar_.symbol(terminal).regex});
  return Intern(std::move(rests));
}

void Lexer::FindGroups(StateId state) {
  RegexStore& regexes = grammar_.regexes();
  BytePartition partition(regexes.class_representatives());
  for (const Rest& rest : states_[static_cast<size_t>(state)].rests) {
    regexes.SplitByDerivative(rest.regex, partition);
  }
  std::array<int, 256> first;
  first.fill(-1);
  for (size_t i = 0; i < num_classes_; ++i) {
    int& byte = first[partition.GroupOf(representatives_[i])];
    if (byte < 0) byte = representatives_[i];
    groups_[static_cast<size_t>(state) * num_classes_ + i] = static_cast<uint8_t>(byte);
  }
  states_[static_cast<size_t>(state)].has_groups = true;
}

Lexer::StateId Lexer::Compute(StateId state, uint8_t byte) {
  const size_t row = static_cast<size_t>(state) * num_classes_;
  const uint8_t representative = Representative(state, byte);
  const uint8_t byte_class = classes_[byte];
  if (const StateId known = next_[row + classes_[representative]]; known != kUnknown) {
    next_[row + byte_class] = known;
    return known;
  }
  std::vector<Rest> rests;
  RegexStore& regexes = grammar_.regexes();
  // The index stays valid while expressions are made, a reference into states_ as well: no state is made here.
  for (const Rest& rest : states_[static_cast<size_t>(state)].rests) {
    const RegexId derivative = regexes.Derivative(rest.regex, representative);
    if (!regexes.IsNothing(derivative)) rests.push_back({rest.terminal, derivative});
  }
  const StateId next = Intern(std::move(rests));
  next_[row + classes_[representative]] = next;
  next_[row + byte_class] = next;
  return next;
}

Lexer::StateId Lexer::Intern(std::vector<Rest> rests) {
  if (rests.empty()) return kDead;
  const std::string key(reinterpret_cast<const char*>(rests.data()), rests.size() * sizeof(Rest));
  if (const auto it = ids_.find(key); it != ids_.end()) return it->second;
  RegexStore& regexes = grammar_.regexes();
  State state;
  for (const Rest& rest : rests) {
    if (regexes.MatchesEmpty(rest.regex)) state.accepting.push_back(rest.terminal);
    state.can_continue = state.can_continue || regexes.CanContinue(rest.regex);
  }
  const auto id = static_cast<StateId>(states_.size());
  memory_bytes_ += 2 * rests.size() * sizeof(Rest) + num_classes_ * (sizeof(StateId) + 1) + sizeof(State) + 64;
  state.rests = std::move(rests);
  next_.resize(next_.size() + num_classes_, kUnknown);
  groups_.resize(next_.size());
  states_.push_back(std::move(state));
  ids_.emplace(key, id);
  return id;
}

}  // namespace vllm
