// Tests KVCacheManager::Fork: which blocks forks share, and when they copy one.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "engine/kv_cache/kv_cache_manager.h"
#include "tests/kv_cache/kv_test_util.h"

namespace vllm {
namespace {

using V = std::vector<int32_t>;

// Returns a request with the parent's computed tokens and one more.
std::unique_ptr<Request> ChildOf(const Request& parent, RequestId id, int32_t token_id) {
  auto core = std::make_shared<EngineCoreRequest>(*parent.core());
  core->request_id = id;
  const auto output = parent.output_token_ids();
  core->prior_output_token_ids.assign(output.begin(), output.end());
  core->prior_output_token_ids.push_back(token_id);
  auto child = std::make_unique<Request>(core);
  child->num_computed_tokens = parent.num_computed_tokens;
  return child;
}

std::vector<BlockCopy> TakeCopies(KVCacheManager& manager) {
  std::vector<BlockCopy> copies;
  manager.TakeBlockCopies(copies);
  return copies;
}

TEST(KVCacheForkTest, CopiesABlockThatIsNotFullOnlyWhenTheForkWrites) {
  ManagerFixture f(10);
  Request parent(MakeCore(1, Iota(0, 6)));
  f.Admit(parent);
  const auto child = ChildOf(parent, 2, 50);
  f.manager.Fork(parent, *child, 6);
  EXPECT_EQ(f.Blocks(*child), (V{1, 2}));
  EXPECT_TRUE(TakeCopies(f.manager).empty());
  EXPECT_EQ(f.manager.CheckIntegrity(), "");

  // The parent writes to the free slots of the shared block.
  EXPECT_TRUE(f.Decode(parent, 60));
  EXPECT_EQ(f.Blocks(parent), (V{1, 2}));
  EXPECT_TRUE(f.manager.AllocateSlots(*child, 1));
  EXPECT_EQ(f.Blocks(*child), (V{1, 3}));
  EXPECT_EQ(TakeCopies(f.manager), (std::vector<BlockCopy>{{2, 3}}));
  EXPECT_EQ(f.manager.pool().block(1).ref_cnt, 2);
  EXPECT_EQ(f.manager.pool().block(2).ref_cnt, 1);
  ++child->num_computed_tokens;
  EXPECT_TRUE(f.Decode(*child, 51));
  EXPECT_TRUE(TakeCopies(f.manager).empty());
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheForkTest, FullBlocksStayShared) {
  ManagerFixture f(10);
  Request parent(MakeCore(1, Iota(0, 8)));
  f.Admit(parent);
  const auto child = ChildOf(parent, 2, 50);
  f.manager.Fork(parent, *child, 8);
  EXPECT_TRUE(f.manager.AllocateSlots(*child, 1));
  EXPECT_EQ(f.Blocks(*child), (V{1, 2, 3}));
  EXPECT_TRUE(TakeCopies(f.manager).empty());
  f.manager.Free(parent);
  EXPECT_EQ(f.manager.pool().block(1).ref_cnt, 1);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheForkTest, AForkThatCannotCopyChangesNothing) {
  ManagerFixture f(2);
  Request parent(MakeCore(1, Iota(0, 6)));
  f.Admit(parent);
  const auto child = ChildOf(parent, 2, 50);
  f.manager.Fork(parent, *child, 6);
  EXPECT_FALSE(f.manager.AllocateSlots(*child, 1));
  EXPECT_EQ(f.Blocks(*child), (V{1, 2}));
  EXPECT_TRUE(TakeCopies(f.manager).empty());
  f.manager.Free(*child);
  f.manager.Free(parent);
  EXPECT_EQ(f.manager.usage(), 0.0);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheForkTest, AForkOfFewerTokensPublishesItsOwnBlocks) {
  ManagerFixture f(20);
  Request parent(MakeCore(1, Iota(0, 6)));
  f.Admit(parent);
  for (int32_t token = 60; token < 70; ++token) EXPECT_TRUE(f.Decode(parent, token));
  Request child(ChildOf(Request(parent.core()), 2, 50)->core());
  child.num_computed_tokens = 6;
  f.manager.Fork(parent, child, 6);
  EXPECT_TRUE(f.manager.AllocateSlots(child, 1));
  ++child.num_computed_tokens;
  for (int32_t token = 80; token < 90; ++token) EXPECT_TRUE(f.Decode(child, token));
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
  // A later request with the child's tokens hits its blocks.
  V tokens = Iota(0, 6);
  tokens.push_back(50);
  for (int32_t token = 80; token < 90; ++token) tokens.push_back(token);
  Request later(MakeCore(3, tokens));
  EXPECT_EQ(f.Admit(later), 16);
  EXPECT_EQ(f.Blocks(later)[1], f.Blocks(child)[1]);
  EXPECT_EQ(f.manager.CheckIntegrity(), "");
}

TEST(KVCacheForkTest, RandomForksKeepTheReferenceCounts) {
  std::mt19937 random(3);
  for (const bool caching : {true, false}) {
    ManagerFixture f(60, caching);
    std::vector<std::unique_ptr<Request>> requests;
    RequestId next_id = 1;
    for (int step = 0; step < 3000; ++step) {
      const size_t index = requests.empty() ? 0 : random() % requests.size();
      if (requests.empty()) {
        requests.push_back(std::make_unique<Request>(MakeCore(next_id++, Iota(0, 1 + static_cast<int>(random() % 9)))));
        ASSERT_GE(f.Admit(*requests.back()), 0);
      } else if (random() % 4 == 0) {
        auto child = ChildOf(*requests[index], next_id++, static_cast<int32_t>(random() % 100));
        f.manager.Fork(*requests[index], *child, requests[index]->num_computed_tokens);
        if (f.manager.AllocateSlots(*child, 1)) {
          ++child->num_computed_tokens;
          requests.push_back(std::move(child));
        } else {
          f.manager.Free(*child);
        }
      } else if (random() % 8 == 0 || !f.Decode(*requests[index], static_cast<int32_t>(random() % 100))) {
        f.manager.Free(*requests[index]);
        requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(index));
      }
      ASSERT_EQ(f.manager.CheckIntegrity(), "");
    }
  }
}

}  // namespace
}  // namespace vllm
