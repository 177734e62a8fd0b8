#include "engine/executor/rank_group.h"

#include <gtest/gtest.h>

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/threading/cancellation.h"
#include "tests/support/thread_count.h"

namespace vllm {
namespace {

using testing_support::NumThreads;
using testing_support::NumThreadsOnceSettled;

TEST(RankGroupTest, ExchangeGivesEveryRankTheBuffersOfAllRanks) {
  for (int size = 1; size <= 4; ++size) {
    RankGroup group(size);
    std::vector<float> memory(8);
    group.Run([&](int rank) {
      Communicator& communicator = group.communicator(rank);
      for (int64_t round = 0; round < 200; ++round) {
        const std::span<const PeerBuffers> peers =
            communicator.Exchange({&memory[static_cast<size_t>(rank)], round, &memory[static_cast<size_t>(4 + rank)]});
        ASSERT_EQ(peers.size(), static_cast<size_t>(size));
        for (size_t peer = 0; peer < peers.size(); ++peer) {
          ASSERT_EQ(peers[peer].in, &memory[peer]);
          ASSERT_EQ(peers[peer].in_stride, round);
          ASSERT_EQ(peers[peer].out, &memory[4 + peer]);
        }
        communicator.Barrier();
      }
    });
  }
}

TEST(RankGroupTest, ExchangeAndBarrierMakeWritesVisibleInManyConsecutiveRuns) {
  RankGroup group(3);
  std::vector<float> sums(3), values(3);
  for (int round = 0; round < 500; ++round) {
    group.Run([&](int rank) {
      const auto index = static_cast<size_t>(rank);
      values[index] = static_cast<float>(round + rank);
      sums[index] = 0.0f;
      for (const PeerBuffers& peer : group.communicator(rank).Exchange({.in = &values[index]})) sums[index] += *peer.in;
      group.communicator(rank).Barrier();
    });
    for (const float sum : sums) ASSERT_EQ(sum, static_cast<float>(3 * round + 3));
  }
}

TEST(RankGroupTest, ThrowingRankWakesWaitingRanksAndItsExceptionIsReported) {
  const int64_t before = NumThreads();
  for (int round = 0; round < 200; ++round) {
    const int size = 2 + round % 3;
    const int failing = round % size;
    RankGroup group(size);
    try {
      group.Run([&](int rank) {
        group.communicator(rank).Barrier();
        if (rank == failing) throw std::runtime_error("rank " + std::to_string(failing));
        group.communicator(rank).Barrier();
        FAIL() << "passed a barrier that a failed rank never reached";
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(e.what(), "rank " + std::to_string(failing));
    }
    EXPECT_THROW(group.Run([](int) {}), std::runtime_error);
  }
  EXPECT_LE(NumThreadsOnceSettled(before), before);
}

TEST(RankGroupTest, CancelledRunEndsAllRanksAndTheGroupCanRunAgain) {
  RankGroup group(3);
  for (int round = 0; round < 200; ++round) {
    const int first = round % 3;
    EXPECT_THROW(group.Run([&](int rank) {
      group.communicator(rank).Barrier();
      if (rank == first) throw kernels::StepCancelled();
      group.communicator(rank).Barrier();
      ADD_FAILURE() << "passed a barrier that a cancelled rank never reached";
    }),
                 kernels::StepCancelled);
    std::vector<float> x(3, 1.0f);
    group.Run([&](int rank) {
      for (const PeerBuffers& peer : group.communicator(rank).Exchange({.out = &x[static_cast<size_t>(rank)]})) {
        if (rank == 2) *peer.out += 2.0f;
      }
      group.communicator(rank).Barrier();
    });
    for (const float value : x) ASSERT_EQ(value, 3.0f);
  }
}

TEST(RankGroupTest, FailureTakesPrecedenceOverCancellation) {
  RankGroup group(2);
  EXPECT_THROW(group.Run([&](int rank) {
    if (rank == 0) throw kernels::StepCancelled();
    throw std::runtime_error("failure");
  }),
               std::runtime_error);
  try {
    group.Run([](int) {});
    FAIL() << "a failed group ran again";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "failure");
  }
}

}  // namespace
}  // namespace vllm
