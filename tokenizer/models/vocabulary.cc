#include "tokenizer/models/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/unicode/metaspace.h"

namespace vllm::tokenizer {
namespace {

[[noreturn]] void ThrowTooManyCollisions(std::string_view token) {
  throw TokenizerError("reading the vocabulary: too many tokens collide with " + QuoteForError(token) +
                       " in the hash table");
}

}  // namespace

uint64_t Vocabulary::HashOf(std::string_view bytes) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15ULL;
  uint64_t hash = bytes.size() * kMultiplier;
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
  };
  size_t position = 0;
  for (; position + 8 <= bytes.size(); position += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + position, 8);
    mix(word);
  }
  uint64_t word = 0;
  if (position < bytes.size()) std::memcpy(&word, bytes.data() + position, bytes.size() - position);
  mix(word);
  mix(hash >> 17);
  return hash;
}

Vocabulary::Vocabulary(size_t num_tokens, size_t num_bytes) {
  text_.reserve(num_bytes);
  entries_.reserve(num_tokens);
  Grow(std::bit_ceil(num_tokens * 2 + 16));
}

void Vocabulary::Grow(size_t num_slots) {
  std::vector<Slot> old(num_slots, Slot{0, 0});
  old.swap(slots_);
  for (const Slot& old_slot : old) {
    if (old_slot.entry == 0) continue;
    const std::string_view token = Text(entries_[old_slot.entry - 1]);
    size_t slot = HashOf(token) & (num_slots - 1);
    for (size_t probes = 0; slots_[slot].entry != 0; ++probes) {
      if (probes == kMaxProbes) ThrowTooManyCollisions(token);
      slot = (slot + 1) & (num_slots - 1);
    }
    slots_[slot] = old_slot;
  }
}

size_t Vocabulary::SlotFor(std::string_view token, int64_t id) {
  if (!(id >= 0 && id <= kMaxId)) {
    throw TokenizerError("reading the vocabulary: token " + QuoteForError(token) + " has id " + std::to_string(id) +
                         " (must be 0 to " + std::to_string(kMaxId) + ")");
  }
  if ((entries_.size() + 1) * 3 > slots_.size() * 2) Grow(slots_.size() * 2);
  const uint64_t hash = HashOf(token);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t slot = hash & (slots_.size() - 1);
  for (size_t probes = 0; slots_[slot].entry != 0; ++probes) {
    if (slots_[slot].tag == tag && Text(entries_[slots_[slot].entry - 1]) == token) return slot;
    if (probes == kMaxProbes) ThrowTooManyCollisions(token);
    slot = (slot + 1) & (slots_.size() - 1);
  }
  slots_[slot].tag = tag;
  return slot;
}

void Vocabulary::AddEntry(std::string_view token, int64_t id) {
  if (text_.size() + token.size() > UINT32_MAX) {
    throw TokenizerError("reading the vocabulary: the tokens are too long in total (limit 4 GiB)");
  }
  entries_.push_back(
      {static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(token.size()), static_cast<int32_t>(id)});
  text_ += token;
  max_token_bytes_ = std::max(max_token_bytes_, token.size());
}

void Vocabulary::Add(std::string_view token, int64_t id) {
  const size_t slot = SlotFor(token, id);
  if (slots_[slot].entry != 0) {
    entries_[slots_[slot].entry - 1].id = static_cast<int32_t>(id);
    return;
  }
  AddEntry(token, id);
  slots_[slot].entry = static_cast<uint32_t>(entries_.size());
}

void Vocabulary::AddListed(std::string_view token, int64_t id, bool replace) {
  const size_t slot = SlotFor(token, id);
  const bool is_new = slots_[slot].entry == 0;
  AddEntry(token, id);
  has_repeated_tokens_ = has_repeated_tokens_ || !is_new;
  if (is_new || replace) slots_[slot].entry = static_cast<uint32_t>(entries_.size());
}

void Vocabulary::Finish() {
  id_limit_ = 0;
  for (const Entry& entry : entries_) id_limit_ = std::max(id_limit_, entry.id + 1);
  // Limits the table of ids by the number of tokens. Otherwise a file of a few bytes could allocate 64 MiB.
  const size_t limit = entries_.size() * 4 + (1 << 20);
  if (static_cast<size_t>(id_limit_) > limit) {
    throw TokenizerError("reading the vocabulary: id " + std::to_string(id_limit_ - 1) + " is too large for " +
                         std::to_string(entries_.size()) + " tokens (must be below " + std::to_string(limit) + ")");
  }
  by_id_.assign(static_cast<size_t>(id_limit_), 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    by_id_[static_cast<size_t>(entries_[i].id)] = static_cast<uint32_t>(i + 1);
  }
}

void Vocabulary::PrefetchEntry(uint64_t hash) const {
  const uint32_t entry = slots_[hash & (slots_.size() - 1)].entry;
  if (entry != 0) __builtin_prefetch(&entries_[entry - 1]);
}

int32_t Vocabulary::Find(std::string_view token, uint64_t hash) const {
  if (token.size() > max_token_bytes_) return -1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  // Used slots may form a run of any length, but no token is more than kMaxProbes slots after the slot of its hash.
  size_t slot = hash & (slots_.size() - 1);
  for (size_t probes = 0; probes <= kMaxProbes && slots_[slot].entry != 0; ++probes) {
    if (slots_[slot].tag == tag) {
      const Entry& entry = entries_[slots_[slot].entry - 1];
      if (Text(entry) == token) return entry.id;
    }
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return -1;
}

std::optional<std::string_view> Vocabulary::TokenOf(int32_t id) const {
  if (id < 0 || id >= id_limit_) return std::nullopt;
  const uint32_t entry = by_id_[static_cast<size_t>(id)];
  if (entry == 0) return std::nullopt;
  return Text(entries_[entry - 1]);
}

std::vector<int32_t> ByteFallbackIds(const Vocabulary& vocabulary) {
  std::vector<int32_t> ids;
  for (unsigned byte = 0; byte < 256; ++byte) {
    constexpr char kHex[] = "0123456789ABCDEF";
    const char name[] = {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
    ids.push_back(vocabulary.Find({name, sizeof name}));
  }
  return ids;
}

bool NoTokenContinuesIntoMetaspace(const Vocabulary& vocabulary) {
  if (vocabulary.Find(kMetaspace) < 0) return false;
  for (int32_t id = 0; id < vocabulary.IdLimit(); ++id) {
    const std::string_view token = vocabulary.TokenOf(id).value_or("");
    const size_t last = token.rfind(kMetaspace);
    if (last == token.npos || last == 0) continue;
    for (size_t position = 0; position < last; position += kMetaspace.size()) {
      if (token.substr(position, kMetaspace.size()) != kMetaspace) return false;
    }
  }
  return true;
}

}  // namespace vllm::tokenizer
