// Tests which LoRA adapters are loaded.
#include "engine/lora/lora_lru.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace vllm {
namespace {

using Slots = std::vector<int32_t>;

TEST(LoRALruTest, AdaptersAreLoadedOnceWhileThereIsRoom) {
  LoRALru lru(3);
  EXPECT_EQ(lru.Use(Slots{4, 1}).load, (Slots{4, 1}));
  EXPECT_TRUE(lru.Use(Slots{1, 4}).empty());
  EXPECT_EQ(lru.Use(Slots{2}).load, (Slots{2}));
  EXPECT_EQ(lru.num_loaded(), 3u);
}

TEST(LoRALruTest, TheAdapterWhoseLastUseIsLongestAgoIsUnloaded) {
  LoRALru lru(2);
  lru.Use(Slots{0, 1});
  lru.Use(Slots{0});
  const LoRALru::Changes& changes = lru.Use(Slots{2});
  EXPECT_EQ(changes.unload, (Slots{1}));
  EXPECT_EQ(changes.load, (Slots{2}));
  EXPECT_TRUE(lru.Use(Slots{0, 2}).empty());
}

TEST(LoRALruTest, AForgottenAdapterIsLoadedAgain) {
  LoRALru lru(2);
  lru.Use(Slots{0, 1});
  lru.Forget(0);
  EXPECT_EQ(lru.num_loaded(), 1u);
  EXPECT_EQ(lru.Use(Slots{0, 1}).load, (Slots{0}));
}

TEST(LoRALruTest, RandomUseNeverUnloadsAnAdapterThatIsNeeded) {
  std::mt19937 random(7);
  for (int64_t capacity = 1; capacity <= 6; ++capacity) {
    LoRALru lru(capacity);
    std::set<int32_t> loaded;
    for (int step = 0; step < 2000; ++step) {
      Slots slots(20);
      for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int32_t>(i);
      std::shuffle(slots.begin(), slots.end(), random);
      slots.resize(1 + random() % static_cast<size_t>(capacity));
      const LoRALru::Changes& changes = lru.Use(slots);
      for (const int32_t slot : changes.unload) ASSERT_EQ(loaded.erase(slot), 1u);
      for (const int32_t slot : changes.load) ASSERT_TRUE(loaded.insert(slot).second);
      for (const int32_t slot : slots) ASSERT_TRUE(loaded.contains(slot));
      ASSERT_LE(static_cast<int64_t>(loaded.size()), capacity);
      ASSERT_EQ(loaded.size(), lru.num_loaded());
    }
  }
}

}  // namespace
}  // namespace vllm
