#include "engine/structured_output/grammar_matcher.h"

#include <algorithm>

namespace vllm {

GrammarMatcher::GrammarMatcher(std::shared_ptr<const CompiledGrammar> grammar, std::span<const int32_t> stop_token_ids)
    : grammar_(std::move(grammar)), stop_token_ids_(stop_token_ids.begin(), stop_token_ids.end()) {}

bool GrammarMatcher::IsStop(int32_t token_id) const {
  return std::find(stop_token_ids_.begin(), stop_token_ids_.end(), token_id) != stop_token_ids_.end();
}

bool GrammarMatcher::MayEnd() { return is_terminated_ || grammar_->automaton.MayEnd(position_); }

bool GrammarMatcher::AcceptToken(int32_t token_id) {
  if (IsStop(token_id)) {
    if (!MayEnd()) return false;
    is_terminated_ = true;
    return true;
  }
  return !is_terminated_ && grammar_->automaton.AdvanceToken(position_, token_id);
}

int32_t GrammarMatcher::ForcedToken() {
  if (is_terminated_) return -1;
  const int32_t token_id = grammar_->automaton.ForcedToken(position_);
  return IsStop(token_id) ? -1 : token_id;
}

void GrammarMatcher::AppendForcedAfter(int32_t token_id, size_t max_tokens, std::vector<int32_t>& forced) {
  if (is_terminated_ || IsStop(token_id)) return;
  grammar_->automaton.AppendForcedAfter(position_, token_id, stop_token_ids_, max_tokens, forced);
}

bool GrammarMatcher::FillBitmask(TokenBitmask& bitmask) {
  const auto num_words = static_cast<size_t>((grammar_->automaton.trie().vocab_size() + 31) / 32);
  if (is_terminated_) {
    bitmask.assign(num_words, 0);
  } else {
    grammar_->automaton.FindAllowedTokens(position_, bitmask);
  }
  const bool may_continue = std::any_of(bitmask.begin(), bitmask.end(), [](uint32_t word) { return word != 0; });
  const bool may_end = MayEnd();
  for (const int32_t id : stop_token_ids_) {
    const auto word = static_cast<size_t>(id) / 32;
    if (id < 0 || word >= num_words) continue;
    const uint32_t bit = 1u << (id % 32);
    bitmask[word] = may_end ? bitmask[word] | bit : bitmask[word] & ~bit;
  }
  return may_continue;
}

}  // namespace vllm
