#include "tokenizer/models/bpe.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>

#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/models/merge_windows.h"
#include "tokenizer/unicode/byte_level.h"
#include "tokenizer/unicode/metaspace.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

// Up to this many symbols, it is fastest to scan all pairs for the best pair.
constexpr size_t kShortWord = 40;
// Up to this many symbols, keeping the best rank of each block of kBlock pairs and scanning these ranks is faster than
// a heap.
constexpr size_t kMediumWord = 4096;
constexpr size_t kBlock = 8;
// Parts of more than kLongWord bytes that do not fit in one window are merged in windows of at least kWindow symbols
// and at least kWindowTokens symbols per byte of the longest token.
constexpr size_t kWindow = 512;
constexpr size_t kWindowTokens = 3;
constexpr size_t kLongWord = 1024;
// Words of more than kLongestMemoWord bytes are rarely tokens, so they are looked up only if ignore_merges is set.
constexpr size_t kLongestMemoWord = 64;
constexpr uint32_t kNone = UINT32_MAX;

// Returns true between two non-ASCII characters. REQUIRES: 0 < pos < bytes.size().
bool IsBorder(std::string_view bytes, size_t pos) {
  return static_cast<unsigned char>(bytes[pos]) >= 0xC0 && static_cast<unsigned char>(bytes[pos - 1]) >= 0x80;
}

// Return the character before or after a border, or the part of it that is in `bytes`; at most four bytes.
std::string_view CharacterBefore(std::string_view bytes, size_t border) {
  size_t begin = border - 1;
  while (begin > 0 && border - begin < 4 && IsUtf8Continuation(bytes[begin])) --begin;
  return bytes.substr(begin, border - begin);
}
std::string_view CharacterAfter(std::string_view bytes, size_t border) {
  return bytes.substr(border, Utf8SequenceLength(bytes[border]));
}

uint64_t PackPair(std::string_view before, std::string_view after) {
  uint64_t pair = 0;
  for (const std::string_view side : {before, after}) {
    uint32_t packed = 0;
    for (const char c : side) packed = packed << 8 | static_cast<unsigned char>(c);
    pair = pair << 32 | packed;
  }
  return pair;
}

}  // namespace

TokenBorders::TokenBorders(const Vocabulary& vocabulary) : pairs_((size_t{1} << kFilterBits) / 64), partial_{} {
  std::string bytes;
  for (int32_t id = 0; id < vocabulary.IdLimit(); ++id) {
    bytes.clear();
    AppendFromByteLevel(vocabulary.TokenOf(id).value_or(""), bytes);
    AddToken(bytes);
  }
}

void TokenBorders::AddToken(std::string_view bytes) {
  for (size_t pos = 1; pos < bytes.size(); ++pos) {
    if (!IsBorder(bytes, pos)) continue;
    const std::string_view before = CharacterBefore(bytes, pos);
    const std::string_view after = CharacterAfter(bytes, pos);
    const bool is_whole = !IsUtf8Continuation(before[0]) && before.size() == Utf8SequenceLength(before[0]) &&
                          after.size() == Utf8SequenceLength(after[0]);
    const size_t bit = is_whole ? PairBit(PackPair(before, after)) : PartialBit(bytes[pos - 1], bytes[pos]);
    (is_whole ? pairs_[bit / 64] : partial_[bit / 64]) |= uint64_t{1} << bit % 64;
  }
}

size_t TokenBorders::PartEnd(std::string_view word, size_t start) const {
  for (size_t pos = start + 1; pos < word.size(); ++pos) {
    if (!IsBorder(word, pos)) continue;
    const size_t partial_bit = PartialBit(word[pos - 1], word[pos]);
    if ((partial_[partial_bit / 64] >> partial_bit % 64 & 1) != 0) continue;
    const size_t bit = PairBit(PackPair(CharacterBefore(word, pos), CharacterAfter(word, pos)));
    if ((pairs_[bit / 64] >> bit % 64 & 1) == 0) return pos;
  }
  return word.size();
}

Bpe::Bpe(BpeConfig config, Vocabulary vocabulary, MergeTable merges)
    : TokenModel(std::move(vocabulary)), config_(std::move(config)), merges_(std::move(merges)) {
  if (!config_.unk_token.empty()) {
    unk_id_ = vocabulary_.Find(config_.unk_token);
    if (unk_id_ < 0) {
      throw TokenizerError("reading the model: unk_token " + QuoteForError(config_.unk_token) +
                           " is not in the vocabulary");
    }
  }
  const bool affixes = !config_.continuing_subword_prefix.empty() || !config_.end_of_word_suffix.empty();
  std::string text;
  for (unsigned c = 0; c < (config_.byte_level ? 256U : 128U); ++c) {
    text.clear();
    AppendCodePoint(config_.byte_level ? ByteToAlphabet(static_cast<unsigned char>(c)) : c, text);
    ascii_ids_.push_back(vocabulary_.Find(text));
  }
  fallback_ids_ = ByteFallbackIds(vocabulary_);
  split_at_metaspace_ =
      !affixes && !config_.byte_level && !config_.ignore_merges && NoTokenContinuesIntoMetaspace(vocabulary_);
  if (config_.byte_level && !affixes) borders_.emplace(vocabulary_);
  const auto num_ids = static_cast<size_t>(vocabulary_.IdLimit());
  if (!affixes) memo_ = std::make_unique<std::atomic<uint8_t>[]>(num_ids);
}

void Bpe::Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const {
  if (word.empty()) return;
  if (!split_at_metaspace_) {
    EncodeChunk(word, scratch, out);
    return;
  }
  for (size_t start = 0; start < word.size();) {
    const size_t end = MetaspaceWordEnd(word, start);
    EncodeChunk(word.substr(start, end - start), scratch, out);
    start = end;
  }
}

int32_t Bpe::FindWord(std::string_view word, ModelScratch& scratch) const {
  if (!config_.byte_level || word.size() > vocabulary_.MaxTokenBytes()) return vocabulary_.Find(word);
  scratch.text.clear();
  AppendByteLevel(word, scratch.text);
  return vocabulary_.Find(scratch.text);
}

void Bpe::EncodeChunk(std::string_view chunk, ModelScratch& scratch, std::vector<int32_t>& out) const {
  const bool may_be_token = memo_ && chunk.size() <= kLongestMemoWord;
  const int32_t whole = config_.ignore_merges || may_be_token ? FindWord(chunk, scratch) : -1;
  if (whole >= 0 && (config_.ignore_merges || IsKnownWhole(whole))) {
    out.push_back(whole);
    return;
  }
  if (!borders_) {
    EncodePart(chunk, whole, scratch, out);
    return;
  }
  for (size_t start = 0; start < chunk.size();) {
    const size_t end = borders_->PartEnd(chunk, start);
    const std::string_view part = chunk.substr(start, end - start);
    start = end;
    if (part.size() == chunk.size()) {
      EncodePart(part, whole, scratch, out);
      continue;
    }
    const int32_t token = part.size() <= kLongestMemoWord ? FindWord(part, scratch) : -1;
    if (token >= 0 && IsKnownWhole(token)) {
      out.push_back(token);
    } else {
      EncodePart(part, token, scratch, out);
    }
  }
}

void Bpe::EncodePart(std::string_view part, int32_t whole, ModelScratch& scratch, std::vector<int32_t>& out) const {
  if (part.size() > kLongWord) {
    EncodeLong(part, scratch, out);
    return;
  }
  Reader reader;
  scratch.ids.clear();
  ReadSymbols(part, reader, part.size(), scratch);
  if (scratch.ids.size() <= kShortWord) {
    MergeShort(scratch.ids);
  } else {
    MergeLinked(scratch);
    std::erase(scratch.ids, -1);
  }
  if (whole >= 0 && memo_) {
    const bool is_whole = scratch.ids.size() == 1 && scratch.ids[0] == whole;
    memo_[static_cast<size_t>(whole)].store(is_whole ? kWhole : kSplit, std::memory_order_relaxed);
  }
  out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
}

void Bpe::EncodeLong(std::string_view chunk, ModelScratch& scratch, std::vector<int32_t>& out) const {
  const size_t first = out.size();
  // Windows that share no token are known only from vocabularies crafted for that. Larger windows may share a token.
  constexpr size_t kGrowth = 16;
  size_t window_size = std::max(kWindow, vocabulary_.MaxTokenBytes() * kWindowTokens);
  for (; window_size < chunk.size(); window_size *= kGrowth) {
    if (EncodeInWindows(chunk, window_size, scratch, out)) return;
    out.resize(first);
  }
  Reader reader;
  scratch.ids.clear();
  ReadSymbols(chunk, reader, chunk.size(), scratch);
  MergeLinked(scratch);
  std::copy_if(scratch.ids.begin(), scratch.ids.end(), std::back_inserter(out), [](int32_t id) { return id >= 0; });
}

bool Bpe::EncodeInWindows(std::string_view chunk, size_t window_size, ModelScratch& scratch,
                          std::vector<int32_t>& out) const {
  Reader reader;
  std::vector<int32_t> symbols;
  const auto encode = [&](uint32_t shift, std::vector<WindowToken>& tokens) {
    scratch.ThrowIfStopped();
    scratch.ids.assign(symbols.begin() + shift, symbols.end());
    ReadSymbols(chunk, reader, window_size, scratch);
    symbols = scratch.ids;
    MergeLinked(scratch);
    for (size_t i = 0; i < scratch.ids.size(); ++i) {
      const auto begin = static_cast<uint32_t>(i);
      if (scratch.ids[i] < 0) continue;
      if (!tokens.empty()) tokens.back().end = begin;
      tokens.push_back({begin, static_cast<uint32_t>(scratch.ids.size()), scratch.ids[i]});
    }
    return reader.position == chunk.size();
  };
  return MergeInWindows(window_size, encode, [&out](const WindowToken& token) { out.push_back(token.id); });
}

void Bpe::ReadSymbols(std::string_view word, Reader& reader, size_t num_symbols, ModelScratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids;
  bool& pending_unk = reader.pending_unk;
  size_t& position = reader.position;
  const bool affixes = memo_ == nullptr;
  while (position < word.size() && ids.size() < num_symbols) {
    const auto lead = static_cast<unsigned char>(word[position]);
    const size_t length = config_.byte_level ? 1 : CodePointAt(word, position).length;
    std::string_view character = word.substr(position, length);
    int32_t id;
    if (affixes) {
      scratch.text.clear();
      if (position > 0) scratch.text += config_.continuing_subword_prefix;
      scratch.text += character;
      if (position + length == word.size()) scratch.text += config_.end_of_word_suffix;
      character = scratch.text;
      id = vocabulary_.Find(character);
    } else {
      id = lead < ascii_ids_.size() ? ascii_ids_[lead] : vocabulary_.Find(character);
    }
    position += length;
    if (id >= 0) {
      if (pending_unk) ids.push_back(unk_id_);
      pending_unk = false;
      ids.push_back(id);
      continue;
    }
    if (config_.byte_fallback) {
      const auto fallback = [this](char c) { return fallback_ids_[static_cast<unsigned char>(c)]; };
      if (std::all_of(character.begin(), character.end(), [&](char c) { return fallback(c) >= 0; })) {
        // Hugging Face `tokenizers` keeps a preceding unknown character pending, so its token follows these bytes.
        for (const char c : character) ids.push_back(fallback(c));
        continue;
      }
    }
    if (unk_id_ < 0) continue;
    if (pending_unk && !config_.fuse_unk) ids.push_back(unk_id_);
    pending_unk = true;
  }
  if (pending_unk && position == word.size()) {
    ids.push_back(unk_id_);
    pending_unk = false;
  }
}

void Bpe::MergeShort(std::vector<int32_t>& ids) const {
  size_t count = ids.size();
  MergeTable::Merge merges[kShortWord];
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = merges_.Find(ids[i], ids[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == MergeTable::kNoRank) break;
    ids[best] = merges[best].id;
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      ids[i] = ids[i + 1];
      merges[i - 1] = merges[i];
    }
    if (best > 0) merges[best - 1] = merges_.Find(ids[best - 1], ids[best]);
    if (best + 1 < count) merges[best] = merges_.Find(ids[best], ids[best + 1]);
  }
  ids.resize(count);
}

void Bpe::MergeLinked(ModelScratch& scratch) const {
  if (scratch.ids.size() < 2) return;
  if (scratch.ids.size() <= kMediumWord) {
    MergeMedium(scratch);
  } else {
    MergeLong(scratch);
  }
}

void Bpe::MergeMedium(ModelScratch& scratch) const {
  const size_t count = scratch.ids.size();
  const size_t num_blocks = (count + kBlock - 1) / kBlock;
  scratch.previous.resize(count);
  scratch.next.resize(count);
  scratch.merges.resize(count);
  scratch.ranks.assign(num_blocks * kBlock, MergeTable::kNoRank);
  scratch.block_ranks.resize(num_blocks);
  int32_t* ids = scratch.ids.data();
  uint32_t* previous = scratch.previous.data();
  uint32_t* next = scratch.next.data();
  MergeTable::Merge* merges = scratch.merges.data();
  uint32_t* ranks = scratch.ranks.data();
  uint32_t* block_ranks = scratch.block_ranks.data();
  for (size_t i = 0; i < count; ++i) {
    previous[i] = i == 0 ? kNone : static_cast<uint32_t>(i - 1);
    next[i] = i + 1 == count ? kNone : static_cast<uint32_t>(i + 1);
    if (i + 1 == count) break;
    merges[i] = merges_.Find(ids[i], ids[i + 1]);
    ranks[i] = merges[i].rank;
  }
  const auto refresh = [&](size_t block) {
    const uint32_t* begin = ranks + block * kBlock;
    uint32_t best = begin[0];
    for (size_t i = 1; i < kBlock; ++i) best = std::min(best, begin[i]);
    block_ranks[block] = best;
  };
  for (size_t block = 0; block < num_blocks; ++block) refresh(block);
  const auto update = [&](uint32_t position) {
    const uint32_t right = next[position];
    merges[position] = right == kNone ? MergeTable::Merge{} : merges_.Find(ids[position], ids[right]);
    ranks[position] = merges[position].rank;
    refresh(position / kBlock);
  };
  while (true) {
    uint32_t best = block_ranks[0];
    for (size_t block = 1; block < num_blocks; ++block) best = std::min(best, block_ranks[block]);
    if (best == MergeTable::kNoRank) break;
    size_t block = 0;
    while (block_ranks[block] != best) ++block;
    auto position = static_cast<uint32_t>(block * kBlock);
    while (ranks[position] != best) ++position;
    const uint32_t right = next[position];
    ids[position] = merges[position].id;
    next[position] = next[right];
    if (next[right] != kNone) previous[next[right]] = position;
    ids[right] = -1;
    ranks[right] = MergeTable::kNoRank;
    if (right / kBlock != position / kBlock) refresh(right / kBlock);
    update(position);
    if (previous[position] != kNone) update(previous[position]);
  }
}

// The heap contains (rank, position) of every mergeable pair, including outdated entries of pairs that have changed. An
// entry is valid only while its rank equals the rank of the pair that now starts at its position.
void Bpe::MergeLong(ModelScratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids;
  std::vector<uint32_t>& previous = scratch.previous;
  std::vector<uint32_t>& next = scratch.next;
  std::vector<MergeTable::Merge>& merges = scratch.merges;
  std::vector<uint64_t>& heap = scratch.heap;
  const size_t count = ids.size();
  previous.resize(count);
  next.resize(count);
  merges.assign(count, {});
  heap.clear();
  const auto entry = [](uint32_t rank, size_t position) { return uint64_t{rank} << 32 | position; };
  for (size_t i = 0; i < count; ++i) {
    previous[i] = i == 0 ? kNone : static_cast<uint32_t>(i - 1);
    next[i] = i + 1 == count ? kNone : static_cast<uint32_t>(i + 1);
    if (i + 1 < count) merges[i] = merges_.Find(ids[i], ids[i + 1]);
    if (merges[i].rank != MergeTable::kNoRank) heap.push_back(entry(merges[i].rank, i));
  }
  const std::greater<> later;
  std::make_heap(heap.begin(), heap.end(), later);
  const auto update = [&, entry](uint32_t position) {
    const uint32_t right = next[position];
    merges[position] = right == kNone ? MergeTable::Merge{} : merges_.Find(ids[position], ids[right]);
    if (merges[position].rank == MergeTable::kNoRank) return;
    heap.push_back(entry(merges[position].rank, position));
    std::push_heap(heap.begin(), heap.end(), later);
  };
  while (!heap.empty()) {
    const uint64_t top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    const auto position = static_cast<uint32_t>(top);
    if (merges[position].rank != top >> 32) continue;
    const uint32_t right = next[position];
    ids[position] = merges[position].id;
    next[position] = next[right];
    if (next[right] != kNone) previous[next[right]] = position;
    ids[right] = -1;
    merges[right] = {};
    update(position);
    if (previous[position] != kNone) update(previous[position]);
  }
}

}  // namespace vllm::tokenizer
