// Tests DataParallelRouter: affinity to prefixes, the bound on the imbalance, and that it forgets.
#include "engine/data_parallel/data_parallel_router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "engine/request/request.h"

namespace vllm {
namespace {

// `num_blocks` blocks of prompt `id`; two prompts have the same first `num_shared` blocks if they have the same
// `group`.
std::vector<BlockHash> Hashes(uint64_t group, size_t num_shared, uint64_t id, size_t num_blocks) {
  std::vector<BlockHash> hashes;
  for (size_t i = 0; i < num_blocks; ++i) {
    hashes.push_back(i < num_shared ? BlockHash{group << 32 | i, 1} : BlockHash{id << 32 | i, 2});
  }
  return hashes;
}

struct Sent {
  int rank;
  int64_t cost;
};

TEST(DataParallelRouterTest, RequestsWithoutPrefixesGoToTheRankWithTheFewestOutstandingTokens) {
  DataParallelRouter router({.num_ranks = 3});
  EXPECT_EQ(router.Route({}, 10), 0);
  EXPECT_EQ(router.Route({}, 5), 1);
  EXPECT_EQ(router.Route({}, 7), 2);
  EXPECT_EQ(router.Route({}, 1), 1);
  EXPECT_EQ(router.Route({}, 1), 1);
  EXPECT_EQ(router.outstanding(1), 7);
  router.Finish(0, 10);
  EXPECT_EQ(router.Route({}, 1), 0);
}

TEST(DataParallelRouterTest, RequestsWithTheSamePrefixGoToTheSameRank) {
  DataParallelRouter router({.num_ranks = 4});
  std::vector<int> rank_of_group;
  for (uint64_t group = 0; group < 8; ++group) {
    rank_of_group.push_back(router.Route(Hashes(group, 100, group, 101), 10));
  }
  for (uint64_t id = 100; id < 200; ++id) {
    const uint64_t group = id % 8;
    EXPECT_EQ(router.Route(Hashes(group, 100, id, 101), 10), rank_of_group[group]);
  }
  // The groups are spread evenly.
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(std::count(rank_of_group.begin(), rank_of_group.end(), rank), 2);
}

TEST(DataParallelRouterTest, PrefixIsComputedAgainOnceWaitingForItCostsMore) {
  DataParallelRouter router({.num_ranks = 2, .tokens_per_hash = 16});
  // All requests share ten blocks, which are 160 tokens.
  std::vector<int> ranks;
  for (uint64_t id = 0; id < 8; ++id) ranks.push_back(router.Route(Hashes(0, 10, id, 10), 50));
  // Rank 0 has 200 outstanding tokens when the fifth request arrives. From then on, both ranks have the prefix.
  EXPECT_EQ(ranks, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(router.Route(Hashes(0, 10, 9, 10), 50), 0);
  EXPECT_EQ(router.Route(Hashes(0, 10, 10, 10), 50), 1);
}

TEST(DataParallelRouterTest, LongerPrefixWins) {
  DataParallelRouter router({.num_ranks = 2});
  EXPECT_EQ(router.Route(Hashes(0, 4, 1, 4), 0), 0);
  EXPECT_EQ(router.Route({}, 1), 0);
  EXPECT_EQ(router.Route(Hashes(7, 9, 7, 9), 1), 1);
  // Rank 1 gets blocks 0 to 7 of the group, rank 0 has only 0 to 3 of them.
  EXPECT_EQ(router.Route({}, 100), 0);
  EXPECT_EQ(router.Route(Hashes(0, 8, 2, 8), 100), 1);
  EXPECT_EQ(router.Route(Hashes(0, 4, 3, 4), 1), 0);
  router.Finish(1, 1);
  EXPECT_EQ(router.Route(Hashes(0, 8, 4, 8), 1), 1);
}

TEST(DataParallelRouterTest, BlockIsCachedOnlyIfItsPredecessorsAre) {
  DataParallelRouter router({.num_ranks = 2});
  const std::vector<BlockHash> hashes = Hashes(0, 4, 1, 4);
  EXPECT_EQ(router.Route(std::span(hashes).first(1), 1), 0);
  EXPECT_EQ(router.Route(std::span(hashes).subspan(1), 1), 1);
  // Rank 1 has three of the four blocks, but not the first.
  EXPECT_EQ(router.Route(hashes, 1), 0);
}

TEST(DataParallelRouterTest, SameCallsGiveTheSameRanks) {
  const auto run = [] {
    DataParallelRouter router({.num_ranks = 5, .max_hashes = 100});
    std::mt19937 random(3);
    std::vector<Sent> sent;
    std::vector<int> ranks;
    for (int i = 0; i < 2000; ++i) {
      if (!sent.empty() && random() % 2 == 0) {
        std::swap(sent[random() % sent.size()], sent.back());
        router.Finish(sent.back().rank, sent.back().cost);
        sent.pop_back();
      }
      const auto cost = static_cast<int64_t>(random() % 300);
      const auto group = static_cast<uint64_t>(random() % 9);
      sent.push_back({router.Route(Hashes(group, 6, static_cast<uint64_t>(i), 9), cost), cost});
      ranks.push_back(sent.back().rank);
    }
    return ranks;
  };
  EXPECT_EQ(run(), run());
}

// Compares each decision with a search through all earlier prompts.
TEST(DataParallelRouterTest, DecisionsAreThoseOfASlowReferenceAndTheImbalanceIsBounded) {
  for (const int num_ranks : {1, 2, 7, 64, 65, 130}) {
    const int64_t max_imbalance = 16 * 20;
    DataParallelRouter router(
        {.num_ranks = num_ranks, .tokens_per_hash = 16, .max_imbalance = max_imbalance, .max_hashes = 1 << 20});
    std::mt19937 random(static_cast<unsigned>(num_ranks));
    std::vector<std::set<std::pair<uint64_t, uint64_t>>> seen(static_cast<size_t>(num_ranks));
    std::vector<int64_t> outstanding(static_cast<size_t>(num_ranks));
    std::vector<Sent> sent;
    for (int i = 0; i < 1500; ++i) {
      if (!sent.empty() && random() % 3 != 0) {
        std::swap(sent[random() % sent.size()], sent.back());
        router.Finish(sent.back().rank, sent.back().cost);
        outstanding[static_cast<size_t>(sent.back().rank)] -= sent.back().cost;
        sent.pop_back();
      }
      const auto cost = static_cast<int64_t>(random() % 200);
      const auto hashes = Hashes(random() % 12, random() % 30, static_cast<uint64_t>(1000 + i), random() % 40);
      int expected = -1;
      std::pair<int64_t, int64_t> best;
      for (size_t rank = 0; rank < seen.size(); ++rank) {
        int64_t num_cached = 0;
        while (num_cached < 20 && num_cached < static_cast<int64_t>(hashes.size()) &&
               seen[rank].contains(
                   {hashes[static_cast<size_t>(num_cached)].lo, hashes[static_cast<size_t>(num_cached)].hi})) {
          ++num_cached;
        }
        const std::pair score(outstanding[rank] - 16 * num_cached, outstanding[rank]);
        if (expected < 0 || score < best) {
          expected = static_cast<int>(rank);
          best = score;
        }
      }
      const int64_t least = *std::min_element(outstanding.begin(), outstanding.end());
      const int rank = router.Route(hashes, cost);
      ASSERT_EQ(rank, expected) << i;
      ASSERT_LE(outstanding[static_cast<size_t>(rank)] - least, max_imbalance);
      outstanding[static_cast<size_t>(rank)] += cost;
      ASSERT_EQ(router.outstanding(rank), outstanding[static_cast<size_t>(rank)]);
      sent.push_back({rank, cost});
      for (size_t b = 0; b < std::min<size_t>(20, hashes.size()); ++b) {
        seen[static_cast<size_t>(rank)].insert({hashes[b].lo, hashes[b].hi});
      }
    }
  }
}

TEST(DataParallelRouterTest, WithoutAnImbalancePrefixesAreIgnored) {
  DataParallelRouter router({.num_ranks = 2, .max_imbalance = 0});
  EXPECT_EQ(router.Route(Hashes(0, 9, 1, 9), 10), 0);
  EXPECT_EQ(router.Route(Hashes(0, 9, 1, 9), 9), 1);
  EXPECT_EQ(router.Route(Hashes(0, 9, 1, 9), 9), 1);
  EXPECT_EQ(router.num_hashes(), 0u);
}

TEST(DataParallelRouterTest, RemembersABoundedNumberOfPrefixes) {
  DataParallelRouter router({.num_ranks = 2, .max_hashes = 100});
  for (uint64_t id = 0; id < 1000; ++id) {
    router.Route(Hashes(0, 0, id, 1 + id % 300), 1);
    ASSERT_LE(router.num_hashes(), 100u);
  }
}

TEST(DataParallelRouterTest, ForgetsThePrefixesThatWereNotUsedRecently) {
  DataParallelRouter router({.num_ranks = 2, .max_hashes = 20});
  const auto often = Hashes(1, 4, 1, 4);
  const auto once = Hashes(2, 4, 2, 4);
  EXPECT_EQ(router.Route({}, 3), 0);
  EXPECT_EQ(router.Route(often, 1), 1);
  EXPECT_EQ(router.Route(once, 1), 1);
  router.Finish(1, 2);
  router.Finish(0, 3);
  EXPECT_EQ(router.Route({}, 1), 0);
  for (uint64_t id = 10; id < 40; ++id) {
    EXPECT_EQ(router.Route(often, 0), 1);
    router.Route(Hashes(0, 0, id, 3), 0);
  }
  EXPECT_EQ(router.Route({}, 2), 1);
  // Rank 0 has fewer outstanding tokens, so only a remembered prefix leads to rank 1.
  EXPECT_EQ(router.Route(often, 0), 1);
  EXPECT_EQ(router.Route(once, 0), 0);
}

TEST(DataParallelRouterTest, PrefixHashesAreThoseOfTheRequest) {
  auto core = std::make_shared<EngineCoreRequest>();
  for (int32_t i = 0; i < 70; ++i) core->prompt_token_ids.push_back(i * 31 % 50);
  core->cache_salt = "salt";
  Request request(core);
  const auto expected = request.BlockHashes(4, 16, HashBlockTokens);
  const std::vector<BlockHash> hashes = PrefixHashes(core->prompt_token_ids, core->cache_salt, 16);
  ASSERT_EQ(hashes.size(), 4u);
  EXPECT_TRUE(std::equal(hashes.begin(), hashes.end(), expected.begin(), expected.end()));
  EXPECT_NE(PrefixHashes(core->prompt_token_ids, "", 16)[0], hashes[0]);
  EXPECT_TRUE(PrefixHashes(std::span(core->prompt_token_ids).first(15), "", 16).empty());
}

}  // namespace
}  // namespace vllm
