#include "app/output/request_stats.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "app/output/duration_text.h"
#include "app/output/prompt_status.h"
#include "app/output/size_text.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

TEST(RequestStatsTest, RankStatsNameTheNumaNodesOfPinnedRanks) {
  const TempDirectory directory;
  for (const char* node : {"node0", "node1"}) std::filesystem::create_directories(directory.path() + "/node/" + node);
  directory.Write("node/online", "0-1\n");
  directory.Write("node/node0/cpulist", "0-2\n");
  directory.Write("node/node1/cpulist", "3-5\n");
  const kernels::CpuTopology cpus({0, 1, 2, 3, 4, 5}, directory.path(), {"", "", ""});

  ParallelConfig parallel;
  parallel.threads_per_rank = 6;
  EXPECT_EQ(RankStatsText(parallel, cpus), "ranks: 1 rank of 6 threads");
  parallel.tensor_parallel_size = 2;
  parallel.threads_per_rank = 1;
  EXPECT_EQ(RankStatsText(parallel, cpus), "ranks: 2 ranks of 1 thread, on NUMA nodes 0, 1");
  parallel.tensor_parallel_size = 3;
  parallel.threads_per_rank = 2;
  EXPECT_EQ(RankStatsText(parallel, cpus), "ranks: 3 ranks of 2 threads, on NUMA nodes 0, 1, 0+1");
  parallel.threads_per_rank = 3;
  EXPECT_EQ(RankStatsText(parallel, cpus), "ranks: 3 ranks of 3 threads");
  parallel.tensor_parallel_size = 1;
  parallel.data_parallel_size = 2;
  EXPECT_EQ(RankStatsText(parallel, cpus), "ranks: 2 engines of 1 rank of 3 threads, on NUMA nodes 0, 1");
}

TEST(RequestStatsTest, TheShortLineHasSpeedCachedShareAndContext) {
  RequestStats stats;
  stats.num_prompt_tokens = 400;
  stats.num_cached_tokens = 332;
  EXPECT_EQ(ShortStatsText(stats, 1412, 8192), "83 % cached · context 1,412/8,192");
}

TEST(RequestStatsTest, ARequestWithDraftsSaysHowManyWereAccepted) {
  RequestStats stats;
  EXPECT_EQ(RequestStatsText(stats).find("drafted"), std::string::npos);
  stats.metrics.num_draft_tokens = 80;
  stats.metrics.num_accepted_draft_tokens = 64;
  EXPECT_TRUE(RequestStatsText(stats).ends_with("load 0.00 s, 64 of 80 drafted tokens accepted (80 %)"))
      << RequestStatsText(stats);
}

TEST(RequestStatsTest, SpeculationIsDescribedByMethod) {
  SpecDecodingStats stats;
  EXPECT_EQ(SpeculationText(stats), "");
  EXPECT_EQ(SpeculationJson(stats).dump(), "{}");
  stats.Add(SpeculativeMethod::kNgram, 3, 2);
  stats.Add(SpeculativeMethod::kNgram, 1, 0);
  EXPECT_EQ(SpeculationText(stats),
            "speculation: ngram, 2 of 4 drafted tokens accepted (50 %), mean acceptance length 2.00");
  stats.Add(SpeculativeMethod::kGrammar, 18, 18);
  EXPECT_EQ(SpeculationText(stats),
            "speculation: ngram, 2 of 4 drafted tokens accepted (50 %), mean acceptance length 2.00; "
            "grammar, 18 of 18 drafted tokens accepted (100 %), mean acceptance length 19.00");
  EXPECT_EQ(SpeculationJson(stats).dump(),
            R"({"ngram":{"drafts":2,"draft_tokens":4,"accepted_tokens":2,"mean_acceptance_length":2.0,)"
            R"("drafted_per_position":[2,1,1],"accepted_per_position":[1,1,0]},)"
            R"("grammar":{"drafts":1,"draft_tokens":18,"accepted_tokens":18,"mean_acceptance_length":19.0,)"
            R"("drafted_per_position":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,3],)"
            R"("accepted_per_position":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,3]}})");
}

TEST(RequestStatsTest, PercentagesHaveOneDecimalBetweenZeroAndTen) {
  EXPECT_EQ(PercentText(0.0), "0 %");
  EXPECT_EQ(PercentText(0.0004), "0.0 %");
  EXPECT_EQ(PercentText(0.031), "3.1 %");
  EXPECT_EQ(PercentText(0.0996), "10 %");
  EXPECT_EQ(PercentText(0.976), "98 %");
  EXPECT_EQ(PercentText(1.0), "100 %");
}

TEST(RequestStatsTest, TheTimeLeftFollowsFromTheTimeSoFar) {
  using Seconds = std::chrono::duration<double>;
  EXPECT_EQ(TimeLeftText(Seconds(4), 400, 2100), " · 21 s left");
  EXPECT_EQ(TimeLeftText(Seconds(10), 100, 1250), " · 2 min 5 s left");
  EXPECT_EQ(TimeLeftText(Seconds(0.1), 100, 1250), "");
  EXPECT_EQ(TimeLeftText(Seconds(10), 0, 1250), "");
}

TEST(RequestStatsTest, DurationsHaveAtMostTwoUnits) {
  using std::chrono::seconds;
  EXPECT_EQ(DurationText(seconds(-1)), "0 s");
  EXPECT_EQ(DurationText(std::chrono::milliseconds(59999)), "59 s");
  EXPECT_EQ(DurationText(seconds(60)), "1 min 0 s");
  EXPECT_EQ(DurationText(seconds(3599)), "59 min 59 s");
  EXPECT_EQ(DurationText(seconds(3600 + 2 * 60 + 59)), "1 h 2 min");
}

}  // namespace
}  // namespace vllm::app
