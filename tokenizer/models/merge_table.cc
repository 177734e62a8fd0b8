#include "tokenizer/models/merge_table.h"

#include <bit>

#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::tokenizer {

MergeTable::MergeTable(size_t num_merges) {
  slots_.resize(std::bit_ceil(num_merges + num_merges / 2 + 16));
  shift_ = 64 - std::countr_zero(slots_.size());
  filter_.resize(slots_.size() / 8);
}

void MergeTable::Add(int32_t left, int32_t right, uint32_t rank, int32_t result) {
  const uint64_t key = Key(left, right);
  size_t slot = SlotOf(key);
  for (size_t probes = 0; slots_[slot].key != kFree && slots_[slot].key != key; ++probes) {
    if (probes == kMaxProbes) {
      throw TokenizerError("reading the merges: too many pairs collide with merge " + std::to_string(rank) +
                           " in the hash table");
    }
    slot = (slot + 1) & (slots_.size() - 1);
  }
  size_ += slots_[slot].key == kFree;
  const uint64_t hash = key * kMultiplier;
  filter_[FilterWord(hash)] |= uint64_t{1} << FilterBit(hash);
  slots_[slot] = {key, {rank, result}};
}

MergeTable MergesOfRanks(const std::vector<RankedToken>& tokens, const std::string& name) {
  // Every split of every token is looked up, and a lookup takes time linear in the length of the token.
  constexpr size_t kMaxTokenBytes = 1024;
  constexpr size_t kMaxTotalBytes = size_t{64} << 20;
  size_t num_bytes = 0;
  for (const RankedToken& token : tokens) {
    num_bytes += token.bytes.size();
    if (token.bytes.size() > kMaxTokenBytes || num_bytes > kMaxTotalBytes) {
      throw TokenizerError("reading " + name + ": tokens are too long (limits: " + std::to_string(kMaxTokenBytes) +
                           " bytes per token, " + std::to_string(kMaxTotalBytes) + " bytes in total)");
    }
  }
  Vocabulary ids(tokens.size(), num_bytes);
  for (const RankedToken& token : tokens) {
    if (ids.Find(token.bytes) >= 0) {
      throw TokenizerError("reading " + name + ": the token " + QuoteForError(token.bytes) + " is repeated");
    }
    ids.Add(token.bytes, token.id);
  }
  struct Merge {
    int32_t left;
    int32_t right;
    uint32_t rank;
    int32_t result;
  };
  std::vector<Merge> merges;
  merges.reserve(tokens.size() * 3);
  for (const RankedToken& token : tokens) {
    for (size_t cut = 1; cut < token.bytes.size(); ++cut) {
      const int32_t left = ids.Find(token.bytes.substr(0, cut));
      if (left < 0) continue;
      const int32_t right = ids.Find(token.bytes.substr(cut));
      if (right >= 0) merges.push_back({left, right, token.rank, token.id});
    }
  }
  MergeTable table(merges.size());
  for (const Merge& merge : merges) table.Add(merge.left, merge.right, merge.rank, merge.result);
  return table;
}

}  // namespace vllm::tokenizer
