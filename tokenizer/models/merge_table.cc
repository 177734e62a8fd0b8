#include "tokenizer/models/merge_table.h"

#include <bit>

#include "tokenizer/formats/tokenizer_error.h"

namespace vllm {

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
      throw TokenizerError("reading the merges: the pairs around merge " + std::to_string(rank) + " share one hash");
    }
    slot = (slot + 1) & (slots_.size() - 1);
  }
  size_ += slots_[slot].key == kFree;
  const uint64_t hash = key * kMultiplier;
  filter_[FilterWord(hash)] |= uint64_t{1} << FilterBit(hash);
  slots_[slot] = {key, {rank, result}};
}

}  // namespace vllm
