// The text and the tokens that must follow: the part of GrammarAutomaton that finds where a grammar leaves no choice.
#include <algorithm>
#include <utility>

#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {

ForcedText GrammarAutomaton::ForcedAt(int32_t state, size_t max_bytes) {
  ForcedText forced;
  while (forced.bytes.size() < max_bytes) {
    {
      const State& current = states_[static_cast<size_t>(state)];
      if (current.threads.empty()) {
        forced.ends = true;
        return forced;
      }
      const auto has_tokens = [&](const Thread& thread) {
        return thread.at_start && !rows_.TokenTerminals(thread.row).empty();
      };
      if (current.may_end || std::ranges::any_of(current.threads, has_tokens)) return forced;
    }
    int32_t next = kDead;
    uint8_t byte = 0;
    for (size_t i = 0; i < lexer_.num_classes(); ++i) {
      const int32_t to = Step(state, class_bytes_[i]);
      if (to == kDead) continue;
      if (to == kLimit || next != kDead || lexer_.ClassSize(i) > 1) return forced;
      next = to;
      byte = class_bytes_[i];
    }
    if (next == kDead) return forced;
    forced.bytes.push_back(static_cast<char>(byte));
    state = next;
  }
  return forced;
}

ForcedText GrammarAutomaton::Forced(Position& position, size_t max_bytes) {
  const std::lock_guard lock(mutex_);
  return has_text_ ? ForcedAt(StateAt(position), max_bytes) : ForcedText();
}

int32_t GrammarAutomaton::ForcedTokenAt(int32_t state) {
  if (const int32_t known = states_[static_cast<size_t>(state)].forced_token; known != kUnknown) return known;
  const ForcedText text = ForcedAt(state, kMaxForcedBytes);
  int32_t token_id = -1;
  if (!text.bytes.empty() && encoder_ != nullptr) {
    const size_t tail = tokenizer::IncompleteUtf8Tail(text.bytes);
    const std::vector<int32_t> ids = encoder_(std::string_view(text.bytes).substr(0, text.bytes.size() - tail));
    if (ids.size() > 1 || (ids.size() == 1 && text.ends)) token_id = ids[0];
  }
  states_[static_cast<size_t>(state)].forced_token = token_id;
  return token_id;
}

int32_t GrammarAutomaton::ForcedToken(Position& position) {
  const std::lock_guard lock(mutex_);
  return has_text_ ? ForcedTokenAt(StateAt(position)) : -1;
}

void GrammarAutomaton::AppendForcedAfter(Position& position, int32_t token_id, std::span<const int32_t> excluded,
                                         size_t max_tokens, std::vector<int32_t>& forced) {
  const std::lock_guard lock(mutex_);
  if (!has_text_) return;
  int32_t state = StateAt(position);
  const std::string_view bytes = trie_->BytesOf(token_id);
  state = bytes.empty() ? StepToken(state, token_id) : Step(state, bytes);
  for (size_t i = 0; i < max_tokens && state >= 0; ++i) {
    const int32_t next = ForcedTokenAt(state);
    if (next < 0 || std::ranges::find(excluded, next) != excluded.end()) return;
    forced.push_back(next);
    state = Step(state, trie_->BytesOf(next));
  }
}

}  // namespace vllm
