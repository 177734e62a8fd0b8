#include "engine/executor/rank_group.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <vector>

#include "kernels/threading/cancellation.h"
#include "tests/support/thread_count.h"

namespace vllm {
namespace {

using testing_support::NumThreads;
using testing_support::NumThreadsOnceSettled;

TEST(RankGroupTest, AllReduceAddsInRankOrderOnEveryRank) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int size = 1; size <= 4; ++size) {
    RankGroup group(size);
    for (const int64_t count : {0, 1, 3, 1000, 5000}) {
      std::vector<std::vector<float>> data(static_cast<size_t>(size), std::vector<float>(static_cast<size_t>(count)));
      for (auto& row : data) {
        for (float& x : row) x = normal(random);
      }
      std::vector<float> expected = data[0];
      for (size_t rank = 1; rank < data.size(); ++rank) {
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += data[rank][i];
      }
      group.Run([&](int rank) { group.communicator(rank).AllReduce(data[static_cast<size_t>(rank)].data(), count); });
      for (const auto& row : data) EXPECT_EQ(row, expected);
    }
  }
}

TEST(RankGroupTest, AllReduceAndBarrierWorkInManyConsecutiveRuns) {
  RankGroup group(3);
  std::vector<float> x(3, 0.0f);
  for (int round = 0; round < 500; ++round) {
    group.Run([&](int rank) {
      auto& mine = x[static_cast<size_t>(rank)];
      mine = static_cast<float>(rank);
      group.communicator(rank).AllReduce(&mine, 1);
      group.communicator(rank).Barrier();
    });
    for (const float value : x) ASSERT_EQ(value, 3.0f);
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
    group.Run([&](int rank) { group.communicator(rank).AllReduce(&x[static_cast<size_t>(rank)], 1); });
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
