#include "engine/kv_cache/free_kv_cache_block_queue.h"

#include <gtest/gtest.h>

#include <array>

namespace vllm {
namespace {

class FreeKVCacheBlockQueueTest : public testing::Test {
 protected:
  FreeKVCacheBlockQueueTest() {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i].block_id = static_cast<int32_t>(i);
      queue_.Append(&blocks_[i]);
    }
  }
  std::vector<int32_t> Ids() const {
    std::vector<int32_t> ids;
    for (const KVCacheBlock* block : queue_.GetAllFreeBlocks()) ids.push_back(block->block_id);
    return ids;
  }
  std::array<KVCacheBlock, 5> blocks_;
  FreeKVCacheBlockQueue queue_;
};

using V = std::vector<int32_t>;

TEST_F(FreeKVCacheBlockQueueTest, BlocksArePoppedInTheOrderTheyWereAppended) {
  EXPECT_EQ(queue_.num_free_blocks(), 5);
  EXPECT_EQ(Ids(), (V{0, 1, 2, 3, 4}));
  for (int32_t i = 0; i < 5; ++i) EXPECT_EQ(queue_.PopFront()->block_id, i);
  EXPECT_EQ(queue_.num_free_blocks(), 0);
}

TEST_F(FreeKVCacheBlockQueueTest, PoppedBlockHasNoLinks) {
  const KVCacheBlock* block = queue_.PopFront();
  EXPECT_EQ(block->prev_free_block, nullptr);
  EXPECT_EQ(block->next_free_block, nullptr);
}

TEST_F(FreeKVCacheBlockQueueTest, RemoveUnlinksABlockInTheMiddle) {
  queue_.Remove(&blocks_[2]);
  EXPECT_EQ(Ids(), (V{0, 1, 3, 4}));
  EXPECT_EQ(queue_.num_free_blocks(), 4);
}

TEST_F(FreeKVCacheBlockQueueTest, RemoveUnlinksTheFirstAndTheLastBlock) {
  queue_.Remove(&blocks_[0]);
  queue_.Remove(&blocks_[4]);
  EXPECT_EQ(Ids(), (V{1, 2, 3}));
}

TEST_F(FreeKVCacheBlockQueueTest, PrependedBlockIsFirst) {
  queue_.Remove(&blocks_[3]);
  queue_.Prepend(&blocks_[3]);
  EXPECT_EQ(Ids(), (V{3, 0, 1, 2, 4}));
}

TEST_F(FreeKVCacheBlockQueueTest, EmptiedQueueCanBeFilledAgain) {
  for (int i = 0; i < 5; ++i) queue_.PopFront();
  EXPECT_TRUE(Ids().empty());
  queue_.Append(&blocks_[1]);
  queue_.Prepend(&blocks_[4]);
  EXPECT_EQ(Ids(), (V{4, 1}));
}

}  // namespace
}  // namespace vllm
