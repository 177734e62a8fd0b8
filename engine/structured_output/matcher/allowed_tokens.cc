// The tokens that a position allows: the part of GrammarAutomaton that reads a vocabulary.
#include <algorithm>
#include <array>
#include <bit>
#include <ranges>
#include <utility>

#include "engine/structured_output/matcher/grammar_automaton.h"

namespace vllm {
namespace {

// The most states that the next plain character may lead to, those that all plain texts may lead to, and those on the
// way inside of characters, to find out if all plain texts may follow. An unlimited string needs 1, 1 and 8; one that
// must contain a word needs about as many as the word has letters. Names that are excluded may need far too many.
constexpr size_t kMaxPlainTargets = 3;
constexpr size_t kMaxPlainStates = 32;
constexpr size_t kMaxInnerStates = 64;
// Smaller subtrees of plain tokens are not worth finding out whether all of them may follow.
constexpr uint32_t kMinWholeSubtree = 4;

void Merge(TokenBitmask& mask, const TokenBitmask& other) {
  for (size_t i = 0; i < mask.size(); ++i) mask[i] |= other[i];
}

void ClearBits(TokenBitmask& mask, std::span<const int32_t> token_ids) {
  for (const int32_t id : token_ids) mask[static_cast<size_t>(id) / 32] &= ~(1u << (id % 32));
}

template <typename T>
void AddOnce(std::vector<T>& list, const T& value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

}  // namespace

void GrammarAutomaton::FindPlainEdges() {
  for (size_t i = 0; i < plain_edges_.size(); ++i) {
    std::vector<std::pair<uint16_t, PlainTextState>> seen;
    for (size_t byte = 0; byte < 255; ++byte) {
      auto state = static_cast<PlainTextState>(i);
      if (!NextPlainText(state, static_cast<uint8_t>(byte))) continue;
      const std::pair edge(classes_[byte], state);
      if (std::ranges::find(seen, edge) != seen.end()) continue;
      seen.push_back(edge);
      plain_edges_[i].push_back({static_cast<uint8_t>(byte), state});
    }
  }
  for (size_t kind = 0; kind < kind_bytes_.size(); ++kind) {
    std::array<bool, 256> seen{};
    for (size_t byte = 0; byte < 128; ++byte) {
      if (CharacterKindOf(static_cast<uint8_t>(byte)) != kind || std::exchange(seen[classes_[byte]], true)) continue;
      kind_bytes_[kind].push_back(static_cast<uint8_t>(byte));
    }
  }
}

GrammarAutomaton::PlainStep GrammarAutomaton::StepPlain(std::vector<std::pair<int32_t, PlainTextState>> seen,
                                                        size_t max_to) {
  PlainStep step;
  for (size_t i = 0; i < seen.size(); ++i) {
    const auto [state, plain] = seen[i];
    for (const PlainEdge& edge : plain_edges_[static_cast<size_t>(plain)]) {
      const int32_t to = Step(state, edge.byte);
      if (to != kDead) step.none_allowed = false;
      if (to < 0) step.all_allowed = false;
      if (to < 0 && step.none_allowed) continue;
      if (step.all_allowed) {
        if (edge.to == PlainTextState::kBoundary) {
          AddOnce(step.to, to);
        } else {
          AddOnce(seen, std::pair(to, edge.to));
        }
        if (step.to.size() > max_to || seen.size() > kMaxInnerStates) step.all_allowed = false;
      }
      if (!step.all_allowed) return step;
    }
  }
  return step;
}

int32_t GrammarAutomaton::AfterPlain(int32_t state) {
  if (states_[static_cast<size_t>(state)].after_plain == kUnknown) {
    const PlainStep step = StepPlain(state, PlainTextState::kBoundary, 1);
    states_[static_cast<size_t>(state)].after_plain = step.none_allowed  ? kDead
                                                      : step.all_allowed ? step.to[0]
                                                                         : kMixed;
  }
  return states_[static_cast<size_t>(state)].after_plain;
}

bool GrammarAutomaton::AllowsPlain(int32_t state) {
  std::vector<int32_t> seen = {state};
  for (size_t i = 0; i < seen.size(); ++i) {
    const PlainStep step = StepPlain(seen[i], PlainTextState::kBoundary, kMaxPlainTargets);
    if (!step.all_allowed) return false;
    for (const int32_t to : step.to) AddOnce(seen, to);
    if (seen.size() > kMaxPlainStates) return false;
  }
  return true;
}

bool GrammarAutomaton::RepeatsKind(int32_t state, uint32_t kind) {
  if (kind < kNonAsciiKind) {
    return std::ranges::all_of(kind_bytes_[kind], [&](uint8_t byte) { return Step(state, byte) == state; });
  }
  std::vector<std::pair<int32_t, PlainTextState>> starts;
  for (const PlainEdge& edge : plain_edges_[static_cast<size_t>(PlainTextState::kBoundary)]) {
    if (edge.to == PlainTextState::kBoundary) continue;
    const int32_t to = Step(state, edge.byte);
    if (to < 0) return false;
    AddOnce(starts, std::pair(to, edge.to));
  }
  const PlainStep step = StepPlain(std::move(starts), 1);
  return step.all_allowed && step.to[0] == state;
}

bool GrammarAutomaton::Repeats(int32_t index, CharacterKinds kinds) {
  if ((kinds >> kNotPlainKind & 1) != 0) return false;
  for (; kinds != 0; kinds &= kinds - 1) {
    const auto kind = static_cast<uint32_t>(std::countr_zero(kinds));
    const CharacterKinds bit = CharacterKinds{1} << kind;
    if ((states_[static_cast<size_t>(index)].known_kinds & bit) == 0) {
      const bool repeats = RepeatsKind(index, kind);
      State& state = states_[static_cast<size_t>(index)];
      state.known_kinds |= bit;
      if (repeats) state.repeated_kinds |= bit;
    }
    if ((states_[static_cast<size_t>(index)].repeated_kinds & bit) == 0) return false;
  }
  return true;
}

bool GrammarAutomaton::AllowsBelow(int32_t before, int32_t state, const TokenTrie::Node& node) {
  if (node.plain == PlainTextState::kBoundary) return Repeats(state, node.kinds_below);
  const bool is_lead_byte = node.plain != PlainTextState::kNotPlain && node.byte >= 0xC0;
  return is_lead_byte && Repeats(before, node.kinds_below | CharacterKinds{1} << kNonAsciiKind);
}

bool GrammarAutomaton::AllowsBelowRoot(int32_t state, const TokenTrie::Node& node) {
  if (node.plain == PlainTextState::kBoundary) return Repeats(state, node.kinds_below);
  const PlainStep step = StepPlain(state, node.plain, 1);
  return step.all_allowed && Repeats(step.to[0], node.kinds_below);
}

void GrammarAutomaton::CountWork(int32_t index) {
  State& state = states_[static_cast<size_t>(index)];
  if (state.last_mask == num_walks_) return;
  state.last_mask = num_walks_;
  work_ += state.work;
  if (work_ > kMaxMaskWork) {
    throw GrammarLimitError("the grammar is too ambiguous here (more than " + std::to_string(kMaxMaskWork) +
                            " readings of the tokens that may follow)");
  }
}

void GrammarAutomaton::Walk(int32_t start, const TokenTrie& tokens, size_t begin, size_t end, TokenBitmask& mask) {
  path_[0] = start;
  const std::span<const TokenTrie::Node> nodes = tokens.nodes();
  for (size_t i = begin; i < end;) {
    const TokenTrie::Node& node = nodes[i];
    const int32_t before = path_[node.depth - 1u];
    const int32_t state = Step(before, node.byte);
    if (state < 0) {
      if (state == kLimit && ++num_limit_hits_ > kMaxLimitHits) ThrowLimit();
      i += node.subtree_size;
      continue;
    }
    if (state != before) CountWork(state);
    path_[node.depth] = state;
    if (node.subtree_size >= kMinWholeSubtree && AllowsBelow(before, state, node)) {
      SetBits(mask, tokens.TokensBelow(i));
      i += node.subtree_size;
      continue;
    }
    SetBits(mask, tokens.TokensOf(i));
    ++i;
  }
}

bool GrammarAutomaton::AddAlongLine(int32_t start, TokenBitmask& mask) {
  std::array<int32_t, TokenSlices::kMaxCharacters + 1> line{start};
  size_t length = 0;
  bool ends = false;
  while (!ends) {
    const int32_t next = AfterPlain(line[length]);
    if (next == kMixed) return false;
    ends = next == kDead;
    if (ends || length == TokenSlices::kMaxCharacters) break;
    line[++length] = next;
  }
  const TokenSlices& slices = trie_->slices();
  Merge(mask, slices.PlainMask(length));
  for (size_t i = 0; i <= length; ++i) Walk(line[i], slices.Suffixes(i), mask);
  if (!ends) Walk(start, slices.long_tokens(), mask);
  return true;
}

void GrammarAutomaton::AddPlainTokens(int32_t start, TokenBitmask& mask) {
  const TokenTrie& tokens = trie_->slices().plain();
  const std::span<const TokenTrie::Node> nodes = tokens.nodes();
  std::vector<size_t> whole, others;  // subtrees of the root, by their first node
  size_t num_whole_tokens = 0;
  for (size_t i = 0; i < nodes.size(); i += nodes[i].subtree_size) {
    const int32_t state = Step(start, nodes[i].byte);
    if (state >= 0 && nodes[i].subtree_size >= kMinWholeSubtree && AllowsBelowRoot(state, nodes[i])) {
      whole.push_back(i);
      num_whole_tokens += tokens.TokensBelow(i).size();
    } else {
      others.push_back(i);
    }
  }
  // Setting the bits of all tokens takes much longer than copying the mask of all.
  if (num_whole_tokens > tokens.tokens().size() / 2) {
    Merge(mask, trie_->slices().PlainMask());
    for (const size_t i : others) ClearBits(mask, tokens.TokensBelow(i));
  } else {
    for (const size_t i : whole) SetBits(mask, tokens.TokensBelow(i));
  }
  for (const size_t i : others) Walk(start, tokens, i, i + nodes[i].subtree_size, mask);
}

void GrammarAutomaton::AddTextTokens(int32_t start, TokenBitmask& mask) {
  if (AddAlongLine(start, mask)) return;
  const TokenSlices& slices = trie_->slices();
  if (AllowsPlain(start)) {
    Merge(mask, slices.PlainMask());
  } else {
    AddPlainTokens(start, mask);
  }
  Walk(start, slices.rest(), mask);
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

bool GrammarAutomaton::HasAllowedTokens(Position& position) {
  const std::lock_guard lock(mutex_);
  return !has_text_ || states_[static_cast<size_t>(StateAt(position))].allowed != nullptr;
}

void GrammarAutomaton::FindAllowedTokens(Position& position, TokenBitmask& mask) {
  const std::lock_guard lock(mutex_);
  const size_t num_words = static_cast<size_t>((trie_->vocab_size() + 31) / 32);
  if (!has_text_) {
    mask.assign(num_words, 0);
    return;
  }
  const int32_t start = StateAt(position);
  if (const StoredMask* allowed = states_[static_cast<size_t>(start)].allowed.get(); allowed != nullptr) {
    allowed->CopyTo(mask);
    return;
  }
  mask.assign(num_words, 0);
  ++num_walks_;
  num_limit_hits_ = 0;
  work_ = 0;
  AddTextTokens(start, mask);
  AddSpecialTokens(start, mask);
  State& state = states_[static_cast<size_t>(start)];
  if (!state.may_end && std::ranges::all_of(mask, [](uint32_t word) { return word == 0; })) {
    if (num_limit_hits_ > 0) ThrowLimit();
    // Some byte may follow, but the vocabulary has no token for it.
    throw GrammarLimitError("no token of the vocabulary continues the text");
  }
  if (mask_bytes_ > kKeptMaskBytes) {
    for (State& other : states_) other.allowed = nullptr;
    mask_bytes_ = 0;
  }
  state.allowed = std::make_unique<const StoredMask>(mask, trie_->slices().PlainMask());
  mask_bytes_ += state.allowed->memory_bytes();
  CountChange();
}

}  // namespace vllm
