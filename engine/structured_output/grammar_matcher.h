// GrammarMatcher: follows the tokens of one sequence through a grammar, and says which tokens may come next. Its state
// is a function of the tokens. To roll back any number of them, for example a rejected draft, go back to a copy; it has
// the text so far and shares everything else. Owned by the rank's CachedRequestState; one thread at a time.
//
// CompiledGrammar: a grammar for one vocabulary, shared by all sequences that must match it. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/structured_output/matcher/grammar_automaton.h"

namespace vllm {

struct CompiledGrammar {
  CompiledGrammar(Grammar grammar, std::shared_ptr<const VocabTrie> trie, GrammarAutomaton::Encoder encoder = nullptr)
      : automaton(std::move(grammar), std::move(trie), std::move(encoder)) {}
  mutable GrammarAutomaton automaton;  // its states are a cache
};

class GrammarMatcher {
 public:
  // `stop_token_ids` end the sequence. They are allowed only where the grammar allows the end of the text.
  GrammarMatcher(std::shared_ptr<const CompiledGrammar> grammar, std::span<const int32_t> stop_token_ids);

  // Adds the next token. Returns false and changes nothing if the grammar does not allow it. Throws like
  // GrammarAutomaton::Advance.
  bool AcceptToken(int32_t token_id);
  // Sets bit t % 32 of word t / 32 of `bitmask` if token t may come next, and clears the others. After a stop token,
  // only stop tokens may come. Returns whether the text may continue: whether another token may come. Throws like
  // GrammarAutomaton::Advance.
  bool FillBitmask(TokenBitmask& bitmask);
  // Returns true if FillBitmask must compute the tokens that may come next, because no sequence was at this point of
  // the grammar before.
  bool NeedsMask() { return !is_terminated_ && !grammar_->automaton.HasAllowedTokens(position_); }
  // Computes these tokens. Throws like FillBitmask.
  void ComputeMask() { grammar_->automaton.AllowedTokens(position_); }
  // Returns the token that must come next, which is not a stop token, or -1 if several may. See GrammarAutomaton.
  int32_t ForcedToken();
  // Appends the tokens that must come after `token_id`, at most max_tokens.
  void AppendForcedAfter(int32_t token_id, size_t max_tokens, std::vector<int32_t>& forced);
  // Returns true if the tokens so far are a complete text.
  bool MayEnd();
  bool is_terminated() const { return is_terminated_; }

 private:
  bool IsStop(int32_t token_id) const;

  std::shared_ptr<const CompiledGrammar> grammar_;
  std::vector<int32_t> stop_token_ids_;
  GrammarAutomaton::Position position_;
  bool is_terminated_ = false;
};

}  // namespace vllm
