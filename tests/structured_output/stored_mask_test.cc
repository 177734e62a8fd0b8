// Tests that masks come back as they were stored, and that masks like one of the bases need little memory.
#include "engine/structured_output/matcher/stored_mask.h"

#include <gtest/gtest.h>

#include <random>

namespace vllm {
namespace {

constexpr size_t kNumWords = 1003;

TokenBitmask RandomMask(std::mt19937& random) {
  TokenBitmask mask(kNumWords);
  for (uint32_t& word : mask) word = static_cast<uint32_t>(random());
  return mask;
}

TokenBitmask Copy(const StoredMask& stored) {
  TokenBitmask mask = {1, 2, 3};  // overwritten
  stored.CopyTo(mask);
  return mask;
}

TEST(StoredMaskTest, MasksComeBackAsTheyWere) {
  std::mt19937 random(1);
  const TokenBitmask base = RandomMask(random);
  const TokenBitmask none(kNumWords, 0);
  EXPECT_EQ(Copy(StoredMask(none, base)), none);
  EXPECT_EQ(Copy(StoredMask(base, base)), base);
  for (size_t num_changes = 1; num_changes <= kNumWords; num_changes *= 2) {
    for (TokenBitmask mask : {none, base, RandomMask(random)}) {
      for (size_t i = 0; i < num_changes; ++i) mask[random() % kNumWords] ^= 1u << (random() % 32);
      ASSERT_EQ(Copy(StoredMask(mask, base)), mask) << num_changes;
    }
  }
}

TEST(StoredMaskTest, MasksLikeABaseNeedLittleMemory) {
  std::mt19937 random(2);
  const TokenBitmask base = RandomMask(random);
  for (TokenBitmask mask : {TokenBitmask(kNumWords, 0), base}) {
    for (const size_t i : {size_t{0}, size_t{17}, kNumWords - 1}) mask[i] = ~mask[i];
    EXPECT_EQ(StoredMask(mask, base).memory_bytes(), sizeof(StoredMask) + 3 * 8);
  }
  EXPECT_EQ(StoredMask(RandomMask(random), base).memory_bytes(), sizeof(StoredMask) + 4 * kNumWords);
}

}  // namespace
}  // namespace vllm
