#include "engine/structured_output/matcher/grammar_automaton.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace vllm {
namespace {

bool Contains(const std::vector<TokenRange>& ranges, int32_t id) {
  return std::ranges::any_of(ranges, [&](const TokenRange& range) { return range.first <= id && id <= range.last; });
}

}  // namespace

GrammarAutomaton::GrammarAutomaton(Grammar grammar, std::shared_ptr<const VocabTrie> trie)
    : grammar_(std::move(grammar)),
      trie_(std::move(trie)),
      has_text_(grammar_.symbol(grammar_.start()).productive),
      lexer_(grammar_),
      rows_(grammar_),
      path_(trie_->max_depth() + 1) {
  Clear();
  if (has_text_ && states_.empty()) ThrowLimit();
}

void GrammarAutomaton::Clear() {
  ++generation_;
  states_.clear();
  state_ids_.clear();
  scans_.clear();
  rows_.Clear();
  lexer_.Clear();
  state_bytes_ = 0;
  num_masks_ = 0;
  if (!has_text_) return;
  try {
    std::vector<Thread> threads;
    bool may_end = false;
    AddRow(rows_.Start(), threads, may_end);
    Intern(std::move(threads), may_end);  // state 0
  } catch (const GrammarLimitError& error) {
    states_.clear();
    limit_error_ = error.what();
  }
}

void GrammarAutomaton::AddRow(RowStore::RowId row, std::vector<Thread>& threads, bool& may_end) {
  may_end = may_end || rows_.MayEnd(row);
  const Lexer::StateId start = lexer_.Start(rows_.Terminals(row));
  if (start != Lexer::kDead || !rows_.TokenTerminals(row).empty()) threads.push_back({row, start, true});
}

int32_t GrammarAutomaton::Intern(std::vector<Thread> threads, bool may_end) {
  if (threads.empty() && !may_end) return kDead;
  std::sort(threads.begin(), threads.end());
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  if (threads.size() > kMaxThreads) {
    throw GrammarLimitError("the grammar is too ambiguous here (more than " + std::to_string(kMaxThreads) +
                            " readings of a text)");
  }
  std::string key;
  for (const Thread& thread : threads) {
    key.append(reinterpret_cast<const char*>(&thread.row), sizeof(thread.row));
    key.append(reinterpret_cast<const char*>(&thread.lexer), sizeof(thread.lexer));
    key.push_back(thread.at_start ? '\1' : '\0');
  }
  key.push_back(may_end ? '\1' : '\0');
  if (states_.size() == states_.capacity()) states_.reserve(std::max<size_t>(16, 2 * states_.size()));
  const auto [it, inserted] = state_ids_.try_emplace(std::move(key), static_cast<int32_t>(states_.size()));
  if (!inserted) return it->second;
  State& state = states_.emplace_back();
  state_bytes_ += sizeof(State) + threads.size() * sizeof(Thread) + it->first.size() + 96;
  state.threads = std::move(threads);
  state.may_end = may_end;
  return it->second;
}

RowStore::RowId GrammarAutomaton::Scan(const Thread& thread, Lexer::StateId lexer_state) {
  const uint64_t key = uint64_t{thread.row} << 32 | static_cast<uint32_t>(lexer_state);
  if (const auto it = scans_.find(key); it != scans_.end()) return it->second;
  const RowStore::RowId row = rows_.Scan(thread.row, lexer_.Accepting(lexer_state));
  scans_.emplace(key, row);
  state_bytes_ += 48;
  return row;
}

int32_t GrammarAutomaton::ComputeStep(int32_t state, uint8_t byte) {
  std::vector<Thread> threads;
  bool may_end = false;
  const size_t num_threads = states_[static_cast<size_t>(state)].threads.size();
  for (size_t i = 0; i < num_threads; ++i) {
    const Thread thread = states_[static_cast<size_t>(state)].threads[i];
    if (thread.lexer == Lexer::kDead) continue;
    const Lexer::StateId next = lexer_.Next(thread.lexer, byte);
    if (next == Lexer::kDead) continue;
    if (lexer_.CanContinue(next)) threads.push_back({thread.row, next, false});
    if (!lexer_.Accepting(next).empty()) AddRow(Scan(thread, next), threads, may_end);
  }
  return Intern(std::move(threads), may_end);
}

int32_t GrammarAutomaton::Step(int32_t state, uint8_t byte) {
  const size_t byte_class = lexer_.ClassOf(byte);
  {
    std::vector<int32_t>& next = states_[static_cast<size_t>(state)].next;
    if (next.empty()) {
      next.assign(lexer_.num_classes(), kUnknown);
      state_bytes_ += lexer_.num_classes() * sizeof(int32_t);
    } else if (next[byte_class] != kUnknown) {
      return next[byte_class];
    }
  }
  int32_t to = kDead;
  try {
    // 0xFF is in no text: it would look like a special token.
    if (byte != static_cast<uint8_t>(kTokenMark)) to = ComputeStep(state, byte);
  } catch (const GrammarLimitError& error) {
    limit_error_ = error.what();
    to = kLimit;
  }
  states_[static_cast<size_t>(state)].next[byte_class] = to;
  return to;
}

int32_t GrammarAutomaton::StepToken(int32_t state, int32_t token_id) {
  std::vector<Thread> threads;
  bool may_end = false;
  try {
    const size_t num_threads = states_[static_cast<size_t>(state)].threads.size();
    for (size_t i = 0; i < num_threads; ++i) {
      const Thread thread = states_[static_cast<size_t>(state)].threads[i];
      if (!thread.at_start) continue;
      std::vector<SymbolId> terminals;
      for (const SymbolId terminal : rows_.TokenTerminals(thread.row)) {
        if (Contains(grammar_.symbol(terminal).tokens, token_id)) terminals.push_back(terminal);
      }
      if (!terminals.empty()) AddRow(rows_.Scan(thread.row, terminals), threads, may_end);
    }
    return Intern(std::move(threads), may_end);
  } catch (const GrammarLimitError& error) {
    limit_error_ = error.what();
    return kLimit;
  }
}

int32_t GrammarAutomaton::Replay(std::string_view text) {
  int32_t state = 0;
  for (size_t i = 0; i < text.size() && state >= 0; ++i) {
    if (text[i] != kTokenMark) {
      state = Step(state, static_cast<uint8_t>(text[i]));
      continue;
    }
    int32_t token_id = 0;
    std::memcpy(&token_id, text.data() + i + 1, sizeof(token_id));
    i += sizeof(token_id);
    state = StepToken(state, token_id);
  }
  return state;
}

int32_t GrammarAutomaton::StateAt(Position& position) {
  // There is no state if an allocation failed in Clear.
  if (states_.empty() || CacheBytes() > max_bytes_) Clear();
  if (states_.empty()) ThrowLimit();
  if (position.generation != generation_) {
    const int32_t state = Replay(position.text);
    if (state == kLimit) ThrowLimit();
    max_bytes_ = std::max(max_bytes_, 2 * CacheBytes());
    position.state = state;
    position.generation = generation_;
  }
  return position.state;
}

bool GrammarAutomaton::Advance(Position& position, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (!has_text_) return false;
  int32_t state = StateAt(position);
  for (const char c : bytes) {
    state = Step(state, static_cast<uint8_t>(c));
    if (state == kDead) return false;
    if (state == kLimit) ThrowLimit();
  }
  position.text += bytes;
  position.state = state;
  return true;
}

bool GrammarAutomaton::AdvanceToken(Position& position, int32_t token_id) {
  if (const std::string_view bytes = trie_->BytesOf(token_id); !bytes.empty()) return Advance(position, bytes);
  const std::lock_guard lock(mutex_);
  if (!has_text_) return false;
  const int32_t state = StepToken(StateAt(position), token_id);
  if (state == kDead) return false;
  if (state == kLimit) ThrowLimit();
  position.text.push_back(kTokenMark);
  position.text.append(reinterpret_cast<const char*>(&token_id), sizeof(token_id));
  position.state = state;
  return true;
}

bool GrammarAutomaton::MayEnd(Position& position) {
  const std::lock_guard lock(mutex_);
  return has_text_ && states_[static_cast<size_t>(StateAt(position))].may_end;
}

ForcedText GrammarAutomaton::Forced(Position& position, size_t max_bytes) {
  const std::lock_guard lock(mutex_);
  ForcedText forced;
  if (!has_text_) return forced;
  int32_t state = StateAt(position);
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
      const int32_t to = Step(state, lexer_.representatives()[i]);
      if (to == kDead) continue;
      if (to == kLimit || next != kDead || lexer_.ClassSize(i) > 1) return forced;
      next = to;
      byte = lexer_.representatives()[i];
    }
    if (next == kDead) return forced;
    forced.bytes.push_back(static_cast<char>(byte));
    state = next;
  }
  return forced;
}

size_t GrammarAutomaton::AddTextTokens(int32_t start, TokenBitmask& mask) {
  path_[0] = start;
  size_t num_limit_hits = 0;
  const std::span<const VocabTrie::Node> nodes = trie_->nodes();
  for (size_t i = 0; i < nodes.size();) {
    const VocabTrie::Node& node = nodes[i];
    const int32_t state = Step(path_[node.depth - 1u], node.byte);
    if (state < 0) {
      if (state == kLimit && ++num_limit_hits > kMaxLimitHits) ThrowLimit();
      i += node.subtree_size;
      continue;
    }
    path_[node.depth] = state;
    for (const int32_t id : trie_->TokensOf(node)) mask[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
    ++i;
  }
  return num_limit_hits;
}

void GrammarAutomaton::AddSpecialTokens(int32_t state, TokenBitmask& mask) {
  for (const Thread& thread : states_[static_cast<size_t>(state)].threads) {
    if (!thread.at_start) continue;
    for (const SymbolId terminal : rows_.TokenTerminals(thread.row)) {
      for (const TokenRange& range : grammar_.symbol(terminal).tokens) {
        const auto last = std::min<int64_t>(range.last, trie_->vocab_size() - 1);
        for (int64_t id = std::max(range.first, 0); id <= last; ++id) {
          // Tokens with bytes match as text only.
          if (trie_->BytesOf(static_cast<int32_t>(id)).empty()) mask[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
        }
      }
    }
  }
}

std::shared_ptr<const TokenBitmask> GrammarAutomaton::AllowedTokens(Position& position) {
  const std::lock_guard lock(mutex_);
  auto mask = std::make_shared<TokenBitmask>(static_cast<size_t>((trie_->vocab_size() + 31) / 32), 0);
  if (!has_text_) return mask;
  const int32_t start = StateAt(position);
  if (states_[static_cast<size_t>(start)].allowed != nullptr) return states_[static_cast<size_t>(start)].allowed;
  const size_t num_limit_hits = AddTextTokens(start, *mask);
  AddSpecialTokens(start, *mask);
  State& state = states_[static_cast<size_t>(start)];
  if (!state.may_end && std::ranges::all_of(*mask, [](uint32_t word) { return word == 0; })) {
    if (num_limit_hits > 0) ThrowLimit();
    // Some byte may follow, but the vocabulary has no token for it.
    throw GrammarLimitError("no token of the vocabulary continues the text");
  }
  if (num_masks_ == kKeptMasks) {
    for (State& other : states_) other.allowed = nullptr;
    num_masks_ = 0;
  }
  state.allowed = mask;
  ++num_masks_;
  return mask;
}

size_t GrammarAutomaton::memory_bytes() {
  const std::lock_guard lock(mutex_);
  return CacheBytes();
}

}  // namespace vllm
