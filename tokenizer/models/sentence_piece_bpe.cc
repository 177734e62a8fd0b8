#include "tokenizer/models/sentence_piece_bpe.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/models/merge_windows.h"
#include "tokenizer/unicode/byte_level.h"
#include "tokenizer/unicode/metaspace.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

constexpr size_t kLongestMemoWord = 64;
// Words that do not fit in one window are merged in windows of at least kWindow bytes and at least kWindowPieces times
// the longest piece, unless the vocabulary has unused pieces.
constexpr size_t kWindow = 4096;
constexpr size_t kWindowPieces = 8;
constexpr uint32_t kNone = UINT32_MAX;
// Flag in the length of a symbol that never merges.
constexpr uint32_t kFrozen = uint32_t{1} << 31;

std::vector<uint32_t> RanksOf(const std::vector<float>& scores) {
  std::vector<float> distinct = scores;
  std::sort(distinct.begin(), distinct.end(), std::greater<>());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<uint32_t> ranks;
  ranks.reserve(scores.size());
  for (const float score : scores) {
    ranks.push_back(static_cast<uint32_t>(std::lower_bound(distinct.begin(), distinct.end(), score, std::greater<>()) -
                                          distinct.begin()));
  }
  return ranks;
}

}  // namespace

// For each unused piece in the text, the length of the left symbol in the last pair found that forms the piece.
struct SentencePieceBpe::Splits {
  std::unordered_map<std::string_view, size_t> left_length;
};

SentencePieceBpe::SentencePieceBpe(SentencePieceBpeConfig config, Vocabulary vocabulary, std::vector<float> scores,
                                   std::vector<PieceType> types)
    : TokenModel(std::move(vocabulary)),
      config_(config),
      types_(std::move(types)),
      fallback_ids_(ByteFallbackIds(vocabulary_)) {
  const auto num_ids = static_cast<size_t>(vocabulary_.IdLimit());
  if (!(config_.unk_id >= -1 && config_.unk_id < vocabulary_.IdLimit())) {
    throw TokenizerError("reading the model: unk_id " + std::to_string(config_.unk_id) +
                         " is not in the vocabulary (limit " + std::to_string(vocabulary_.IdLimit() - 1) + ")");
  }
  scores.resize(num_ids, 0);
  types_.resize(num_ids, PieceType::kNormal);
  for (const float score : scores) {
    if (!(score >= -3e38F && score <= 3e38F))
      throw TokenizerError("reading the model: a score is NaN or outside -3e38..3e38");
  }
  ranks_ = RanksOf(scores);
  has_unused_ =
      !config_.all_pieces_merge && std::find(types_.begin(), types_.end(), PieceType::kUnused) != types_.end();
  if (!config_.all_pieces_merge) {
    std::vector<TokenTrie::Entry> entries;
    for (size_t id = 0; id < num_ids; ++id) {
      if (types_[id] != PieceType::kUserDefined) continue;
      const auto text = vocabulary_.TokenOf(static_cast<int32_t>(id));
      if (text) entries.push_back({*text, static_cast<int32_t>(id)});
    }
    user_defined_ = TokenTrie(std::move(entries));
  }
  split_at_metaspace_ = !has_unused_ && NoTokenContinuesIntoMetaspace(vocabulary_);
  memo_ = std::make_unique<std::atomic<uint8_t>[]>(num_ids);
}

int32_t SentencePieceBpe::FindMergeable(std::string_view text) const {
  const int32_t id = vocabulary_.Find(text);
  if (id < 0 || config_.all_pieces_merge) return id;
  const PieceType type = types_[static_cast<size_t>(id)];
  const bool merges = type == PieceType::kNormal || type == PieceType::kUserDefined || type == PieceType::kUnused;
  return merges ? id : -1;
}

void SentencePieceBpe::Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const {
  if (!split_at_metaspace_) {
    EncodeChunk(word, scratch, out);
    return;
  }
  const size_t first = out.size();
  for (size_t start = 0; start < word.size();) {
    const size_t end = MetaspaceWordEnd(word, start);
    const size_t joint = out.size();
    EncodeChunk(word.substr(start, end - start), scratch, out);
    // Adjacent unknown characters on both sides of the split position form one run, which gets one unknown token.
    if (!config_.byte_fallback && joint > first && joint < out.size() && out[joint] == config_.unk_id &&
        out[joint - 1] == config_.unk_id) {
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(joint));
    }
    start = end;
  }
}

void SentencePieceBpe::EncodeChunk(std::string_view chunk, ModelScratch& scratch, std::vector<int32_t>& out) const {
  if (chunk.empty()) return;
  const int32_t whole = chunk.size() <= kLongestMemoWord ? FindMergeable(chunk) : -1;
  if (whole >= 0 && memo_[static_cast<size_t>(whole)].load(std::memory_order_relaxed) == kWhole) {
    out.push_back(whole);
    return;
  }
  const size_t first = out.size();
  // How an unused piece is split again depends on the whole word, so do not use windows.
  size_t window_size = has_unused_ ? chunk.size() : std::max(kWindow, vocabulary_.MaxTokenBytes() * kWindowPieces);
  for (constexpr size_t kGrowth = 16; window_size < chunk.size(); window_size *= kGrowth) {
    if (EncodeInWindows(chunk, window_size, scratch, out)) return;
    out.resize(first);
  }
  Splits splits;
  Merge(chunk, chunk.size(), scratch, has_unused_ ? &splits : nullptr);
  bool after_unknown = false;
  for (uint32_t pos = 0; pos != kNone; pos = scratch.next[pos]) {
    AppendSymbol(chunk.substr(pos, scratch.lengths[pos] & ~kFrozen), splits, after_unknown, out);
  }
  if (whole >= 0) {
    const bool is_whole = out.size() == first + 1 && out[first] == whole;
    memo_[static_cast<size_t>(whole)].store(is_whole ? kWhole : kSplit, std::memory_order_relaxed);
  }
}

bool SentencePieceBpe::EncodeInWindows(std::string_view chunk, size_t window_size, ModelScratch& scratch,
                                       std::vector<int32_t>& out) const {
  size_t base = 0;
  const auto encode = [&](uint32_t shift, std::vector<WindowToken>& tokens) {
    scratch.ThrowIfStopped();
    base += shift;
    const size_t size = Merge(chunk.substr(base), window_size, scratch, nullptr);
    for (uint32_t pos = 0; pos != kNone; pos = scratch.next[pos]) {
      tokens.push_back({pos, pos + (scratch.lengths[pos] & ~kFrozen), -1});
    }
    return base + size == chunk.size();
  };
  const Splits splits;
  bool after_unknown = false;
  size_t done = 0;
  return MergeInWindows(window_size, encode, [&](const WindowToken& token) {
    AppendSymbol(chunk.substr(done, token.end - token.begin), splits, after_unknown, out);
    done += token.end - token.begin;
  });
}

// A symbol is identified by the byte where it starts. The heap contains (rank, start) of mergeable pairs, including
// outdated entries of pairs that have changed. An entry is valid only while its rank is that of the pair that now
// starts there.
size_t SentencePieceBpe::Merge(std::string_view text, size_t limit, ModelScratch& scratch, Splits* splits) const {
  std::vector<uint32_t>& previous = scratch.previous;
  std::vector<uint32_t>& next = scratch.next;
  std::vector<uint32_t>& lengths = scratch.lengths;
  std::vector<MergeTable::Merge>& merges = scratch.merges;
  std::vector<uint64_t>& heap = scratch.heap;
  limit = std::min(limit, text.size());
  previous.resize(limit);
  next.resize(limit);
  lengths.resize(limit);
  merges.assign(limit, {});
  heap.clear();
  uint32_t before = kNone;
  size_t pos = 0;
  while (pos < limit) {
    const auto found = user_defined_.LongestPrefix(text.substr(pos));
    const size_t length = found.length > 0 ? found.length : CodePointAt(text, pos).length;
    const auto symbol = static_cast<uint32_t>(pos);
    lengths[pos] = static_cast<uint32_t>(length) | (found.length > 0 ? kFrozen : 0);
    previous[pos] = before;
    next[pos] = kNone;
    if (before != kNone) next[before] = symbol;
    before = symbol;
    pos += length;
  }
  const std::greater<> later;
  const auto update = [&](uint32_t left) {
    merges[left] = {};
    const uint32_t right = next[left];
    if (right == kNone || ((lengths[left] | lengths[right]) & kFrozen) != 0) return false;
    const std::string_view both = text.substr(left, lengths[left] + lengths[right]);
    const int32_t id = FindMergeable(both);
    if (id < 0) return false;
    merges[left] = {ranks_[static_cast<size_t>(id)], id};
    heap.push_back(uint64_t{merges[left].rank} << 32 | left);
    if (splits != nullptr && types_[static_cast<size_t>(id)] == PieceType::kUnused) {
      splits->left_length[both] = lengths[left];
    }
    return true;
  };
  for (uint32_t symbol = 0; symbol != kNone; symbol = next[symbol]) update(symbol);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    const uint64_t top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    const auto left = static_cast<uint32_t>(top);
    if (merges[left].rank != top >> 32) continue;
    const uint32_t right = next[left];
    lengths[left] += lengths[right];
    next[left] = next[right];
    if (next[right] != kNone) previous[next[right]] = left;
    merges[right] = {};
    if (previous[left] != kNone && update(previous[left])) std::push_heap(heap.begin(), heap.end(), later);
    if (update(left)) std::push_heap(heap.begin(), heap.end(), later);
  }
  return pos;
}

void SentencePieceBpe::AppendSymbol(std::string_view symbol, const Splits& splits, bool& after_unknown,
                                    std::vector<int32_t>& out) const {
  const auto usable = [this](int32_t id) {
    if (id < 0 || config_.all_pieces_merge) return id >= 0;
    return id != config_.unk_id && types_[static_cast<size_t>(id)] != PieceType::kUnused;
  };
  if (const int32_t id = vocabulary_.Find(symbol); usable(id)) {
    out.push_back(id);
    after_unknown = false;
    return;
  }
  std::vector<std::string_view> pending{symbol};
  while (!pending.empty()) {
    const std::string_view text = pending.back();
    pending.pop_back();
    const int32_t id = vocabulary_.Find(text);
    const bool unused = id >= 0 && !usable(id) && id != config_.unk_id;
    if (unused) {
      if (const auto split = splits.left_length.find(text); split != splits.left_length.end()) {
        pending.push_back(text.substr(split->second));
        pending.push_back(text.substr(0, split->second));
        continue;
      }
    }
    if (unused || usable(id)) {
      out.push_back(id);
      after_unknown = false;
      continue;
    }
    const auto fallback = [this](char c) { return fallback_ids_[static_cast<unsigned char>(c)]; };
    if (config_.byte_fallback && std::all_of(text.begin(), text.end(), [&](char c) { return fallback(c) >= 0; })) {
      for (const char c : text) out.push_back(fallback(c));
    } else if (config_.unk_id >= 0 && !after_unknown) {
      out.push_back(config_.unk_id);
    }
    after_unknown = true;
  }
}

}  // namespace vllm::tokenizer
