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

GrammarAutomaton::GrammarAutomaton(Grammar grammar, std::shared_ptr<const VocabTrie> trie, Encoder encoder)
    : grammar_(std::move(grammar)),
      trie_(std::move(trie)),
      encoder_(std::move(encoder)),
      has_text_(grammar_.symbol(grammar_.start()).productive),
      lexer_(grammar_),
      rows_(grammar_),
      path_(trie_->max_depth() + 1) {
  // 0xFF is the only byte of the last class, because it is in no text: it would look like a special token.
  for (size_t byte = 0; byte < 256; ++byte) classes_[byte] = lexer_.ClassOf(static_cast<uint8_t>(byte));
  for (size_t i = 0; i < lexer_.num_classes(); ++i) class_bytes_.push_back(lexer_.representatives()[i]);
  // If it is the only byte of its class, this class is not used.
  num_classes_ = lexer_.num_classes() + 1;
  classes_[0xFF] = static_cast<uint16_t>(num_classes_ - 1);
  FindPlainEdges();
  Clear();
  if (has_text_ && states_.empty()) ThrowLimit();
}

GrammarAutomaton::~GrammarAutomaton() {
  if (memory_total_ != nullptr) memory_total_->fetch_sub(counted_bytes_, std::memory_order_relaxed);
}

void GrammarAutomaton::CountMemory(std::shared_ptr<std::atomic<size_t>> total) {
  const std::lock_guard lock(mutex_);
  memory_total_ = std::move(total);
  CountChange();
}

void GrammarAutomaton::TryDiscardStates() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  Clear();
  CountChange();
}

void GrammarAutomaton::Clear() {
  ++generation_;
  states_.clear();
  next_.clear();
  state_ids_.clear();
  scans_.clear();
  rows_.Clear();
  lexer_.Clear();
  state_bytes_ = 0;
  mask_bytes_ = 0;
  grammar_bytes_ = sizeof(GrammarAutomaton) + grammar_.memory_bytes();
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
  // Allocate first, so that a failure leaves no id without a state.
  if (states_.size() == states_.capacity()) {
    states_.reserve(std::max<size_t>(16, 2 * states_.size()));
    next_.reserve(states_.capacity() * num_classes_);
  }
  const auto [it, inserted] = state_ids_.try_emplace(std::move(key), static_cast<int32_t>(states_.size()));
  if (!inserted) return it->second;
  State& state = states_.emplace_back();
  next_.resize(states_.size() * num_classes_, kUnknown);
  next_.back() = kDead;  // 0xFF
  state_bytes_ +=
      sizeof(State) + num_classes_ * sizeof(int32_t) + threads.size() * sizeof(Thread) + it->first.size() + 96;
  for (const Thread& thread : threads) {
    state.work += 1;
    if (thread.lexer != Lexer::kDead) state.work += static_cast<uint32_t>(lexer_.NumTerminals(thread.lexer));
    if (thread.at_start) state.work += static_cast<uint32_t>(rows_.NumItems(thread.row));
  }
  state.threads = std::move(threads);
  state.may_end = may_end;
  return it->second;
}

RowStore::RowId GrammarAutomaton::ScanOne(RowStore::RowId row, Lexer::StateId lexer_state) {
  const uint64_t key = uint64_t{row} << 32 | static_cast<uint32_t>(lexer_state);
  if (const auto it = scans_.find(key); it != scans_.end()) return it->second;
  const RowStore::Reading reading{row, lexer_.Accepting(lexer_state)};
  const RowStore::RowId next = rows_.Scan(std::span(&reading, 1));
  scans_.emplace(key, next);
  state_bytes_ += 48;
  return next;
}

int32_t GrammarAutomaton::ComputeStep(int32_t state, uint8_t byte) {
  std::vector<Thread> threads;
  std::vector<std::pair<RowStore::RowId, Lexer::StateId>> ends;  // the threads whose terminals may end here
  for (const Thread& thread : states_[static_cast<size_t>(state)].threads) {
    if (thread.lexer == Lexer::kDead) continue;
    const Lexer::StateId next = lexer_.Next(thread.lexer, byte);
    if (next == Lexer::kDead) continue;
    if (lexer_.CanContinue(next)) threads.push_back({thread.row, next, false});
    if (!lexer_.Accepting(next).empty()) ends.emplace_back(thread.row, next);
  }
  bool may_end = false;
  if (ends.size() == 1) {
    AddRow(ScanOne(ends[0].first, ends[0].second), threads, may_end);
  } else if (!ends.empty()) {
    // One row for all of them: otherwise ambiguous texts would have a row for each combination of their readings.
    std::vector<RowStore::Reading> readings;
    for (const auto& [row, lexer_state] : ends) readings.push_back({row, lexer_.Accepting(lexer_state)});
    AddRow(rows_.Scan(readings), threads, may_end);
  }
  return Intern(std::move(threads), may_end);
}

int32_t GrammarAutomaton::Step(int32_t state, std::string_view bytes) {
  for (size_t i = 0; i < bytes.size() && state >= 0; ++i) state = Step(state, static_cast<uint8_t>(bytes[i]));
  return state;
}

int32_t GrammarAutomaton::StepSlowly(int32_t state, uint8_t byte) {
  const size_t row = static_cast<size_t>(state) * num_classes_;
  const std::vector<Thread>& threads = states_[static_cast<size_t>(state)].threads;
  // Most bytes lead to the same state as others.
  const bool is_simple = threads.size() == 1 && threads[0].lexer != Lexer::kDead;
  const uint8_t representative = is_simple ? lexer_.Representative(threads[0].lexer, byte) : byte;
  int32_t to = next_[row + classes_[representative]];
  if (to == kUnknown) {
    try {
      to = ComputeStep(state, representative);
    } catch (const EmptinessLimitError&) {
      throw;
    } catch (const GrammarLimitError& error) {
      limit_error_ = error.what();
      to = kLimit;
    }
    next_[row + classes_[representative]] = to;
  }
  next_[row + classes_[byte]] = to;
  return to;
}

int32_t GrammarAutomaton::StepToken(int32_t state, int32_t token_id) {
  try {
    for (const Thread& thread : states_[static_cast<size_t>(state)].threads) {
      if (!thread.at_start) continue;  // there is at most one at the start
      std::vector<SymbolId> terminals;
      for (const SymbolId terminal : rows_.TokenTerminals(thread.row)) {
        if (Contains(grammar_.symbol(terminal).tokens, token_id)) terminals.push_back(terminal);
      }
      if (terminals.empty()) return kDead;
      std::vector<Thread> threads;
      bool may_end = false;
      const RowStore::Reading reading{thread.row, terminals};
      AddRow(rows_.Scan(std::span(&reading, 1)), threads, may_end);
      return Intern(std::move(threads), may_end);
    }
    return kDead;
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
  const int32_t state = Step(StateAt(position), bytes);
  if (state == kDead) return false;
  if (state == kLimit) ThrowLimit();
  position.text += bytes;
  position.state = state;
  CountChange();
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

size_t GrammarAutomaton::memory_bytes() {
  const std::lock_guard lock(mutex_);
  return MemoryBytes();
}

}  // namespace vllm
