#include "engine/structured_output/matcher/stored_mask.h"

#include <algorithm>

namespace vllm {

StoredMask::StoredMask(const TokenBitmask& mask, const TokenBitmask& base) : size_(mask.size()) {
  uint32_t from_none = 0, from_base = 0;
  for (size_t i = 0; i < size_; ++i) {
    from_none += mask[i] != 0 ? 1u : 0u;
    from_base += mask[i] != base[i] ? 1u : 0u;
  }
  const size_t num_changes = std::min(from_none, from_base);
  if (num_changes * 2 > size_) {
    words_ = mask;
    return;
  }
  if (from_base < from_none) base_ = &base;
  changes_.reserve(num_changes);
  const uint32_t base_bits = base_ == nullptr ? 0 : UINT32_MAX;
  constexpr size_t kBlock = 16;  // most blocks have no change
  for (size_t begin = 0; begin < size_; begin += kBlock) {
    const size_t end = std::min(size_, begin + kBlock);
    uint32_t differences = 0;
    for (size_t i = begin; i < end; ++i) differences |= mask[i] ^ (base[i] & base_bits);
    if (differences == 0) continue;
    for (size_t i = begin; i < end; ++i) {
      if (mask[i] != (base[i] & base_bits)) changes_.push_back({static_cast<uint32_t>(i), mask[i]});
    }
  }
}

void StoredMask::CopyTo(TokenBitmask& mask) const {
  if (!words_.empty()) {
    mask = words_;
    return;
  }
  if (base_ == nullptr) {
    mask.assign(size_, 0);
  } else {
    mask = *base_;
  }
  for (const Change& change : changes_) mask[change.index] = change.word;
}

}  // namespace vllm
