// The merges of a BPE model: (left id, right id) -> (rank, id of the result), in a flat open-addressing hash table.
// Owned by the model. A loader fills it. Afterwards it is read-only, and any thread may use it.
// Invariant: every pair is at most kMaxProbes slots after the slot that its hash selects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/vocabulary.h"

namespace vllm::tokenizer {

class MergeTable {
 public:
  static constexpr uint32_t kNoRank = UINT32_MAX;
  struct Merge {
    uint32_t rank = kNoRank;
    int32_t id = -1;
  };

  explicit MergeTable(size_t num_merges = 0);

  // If a pair is repeated, the later rank wins. Throws TokenizerError if too many pairs collide.
  // REQUIRES: left, right, result >= 0.
  void Add(int32_t left, int32_t right, uint32_t rank, int32_t result);

  // Prefetches the first slot that Add and Find read for this pair.
  void Prefetch(int32_t left, int32_t right) const { __builtin_prefetch(&slots_[SlotOf(Key(left, right))]); }

  // The result has rank == kNoRank if the pair does not merge.
  Merge Find(int32_t left, int32_t right) const {
    const uint64_t key = Key(left, right);
    // Most pairs do not merge, and the filter is small enough to stay in cache.
    const uint64_t hash = key * kMultiplier;
    if ((filter_[FilterWord(hash)] >> FilterBit(hash) & 1) == 0) return {};
    // Used slots may form a run of any length, but no pair is more than kMaxProbes slots after the slot of its hash.
    size_t slot = SlotOf(key);
    for (size_t probes = 0; probes <= kMaxProbes; ++probes) {
      if (slots_[slot].key == key) return slots_[slot].merge;
      if (slots_[slot].key == kFree) break;
      slot = (slot + 1) & (slots_.size() - 1);
    }
    return {};
  }

  size_t size() const { return size_; }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  static constexpr size_t kMaxProbes = 4096;
  static constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15ULL;
  struct Slot {
    uint64_t key = kFree;
    Merge merge;
  };

  static uint64_t Key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t SlotOf(uint64_t key) const { return static_cast<size_t>((key * kMultiplier) >> shift_); }
  // The filter has eight bits per slot.
  size_t FilterWord(uint64_t hash) const { return static_cast<size_t>(hash >> (shift_ + 3)); }
  int FilterBit(uint64_t hash) const { return static_cast<int>(hash >> (shift_ - 3) & 63); }

  std::vector<Slot> slots_;
  std::vector<uint64_t> filter_;  // bit set indexed by the hash of a pair; set if some pair with this hash merges
  int shift_;
  size_t size_ = 0;
};

// A token of a tiktoken vocabulary. Such a vocabulary has no list of merges: two adjacent tokens merge if their bytes
// together are a token, and the pair that forms the token of lowest rank merges first.
struct RankedToken {
  std::string_view bytes;
  int32_t id;
  uint32_t rank;
};

// Returns the merges that `tokens` imply. Throws TokenizerError if a token is repeated or the tokens are too long, and
// in the cases of Vocabulary::Add and MergeTable::Add. O(total bytes of the tokens * length of the longest token).
MergeTable MergesOfRanks(const std::vector<RankedToken>& tokens, const std::string& name_for_errors);

}  // namespace vllm::tokenizer
