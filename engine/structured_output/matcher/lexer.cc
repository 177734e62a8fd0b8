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

Lexer::StateId Lexer::Compute(StateId state, uint8_t byte) {
  std::vector<Rest> rests;
  RegexStore& regexes = grammar_.regexes();
  byte = representatives_[classes_[byte]];  // the store keeps derivatives by byte
  // The index stays valid while expressions are made, a reference into states_ as well: no state is made here.
  for (const Rest& rest : states_[static_cast<size_t>(state)].rests) {
    const RegexId derivative = regexes.Derivative(rest.regex, byte);
    if (!regexes.IsNothing(derivative)) rests.push_back({rest.terminal, derivative});
  }
  const StateId next = Intern(std::move(rests));
  next_[static_cast<size_t>(state) * num_classes_ + classes_[byte]] = next;
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
  memory_bytes_ += 2 * rests.size() * sizeof(Rest) + num_classes_ * sizeof(StateId) + sizeof(State) + 64;
  state.rests = std::move(rests);
  next_.resize(next_.size() + num_classes_, kUnknown);
  states_.push_back(std::move(state));
  ids_.emplace(key, id);
  return id;
}

}  // namespace vllm
