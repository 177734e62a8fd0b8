// Tests the rules of beam search against a brute force, and the ranking of finished sequences.
#include "engine/sched/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <tuple>

namespace vllm {
namespace {

// Returns a position whose first entry is a sampled token, which the search must ignore.
Logprobs Position(const std::vector<std::pair<int32_t, float>>& top) {
  Logprobs logprobs;
  logprobs.width = top.size() + 1;
  logprobs.token_ids.push_back(999);
  logprobs.logprobs.push_back(100.0f);
  for (const auto& [id, logprob] : top) {
    logprobs.token_ids.push_back(id);
    logprobs.logprobs.push_back(logprob);
  }
  logprobs.ranks.push_back(1);
  return logprobs;
}

TEST(BeamSearchTest, SelectionEqualsABruteForce) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const size_t width = 1 + random() % 5;
    const size_t num_beams = 1 + random() % width;
    std::vector<Logprobs> tops(num_beams);
    std::vector<BeamRow> rows;
    std::vector<std::tuple<double, size_t, int32_t>> live;
    std::vector<BeamCandidate> completed;
    for (size_t b = 0; b < num_beams; ++b) {
      std::vector<std::pair<int32_t, float>> top;
      const double sum = -0.5 * static_cast<double>(random() % 8);
      for (int32_t id = 0; id < 9; ++id) {
        if (random() % 3 == 0) continue;
        top.emplace_back(id, -0.5f * static_cast<float>(random() % 6));  // few values, so that there are ties
        const double total = sum + static_cast<double>(top.back().second);
        if (id == 2 || id == 5) {
          completed.push_back({b, id, total});
        } else {
          live.emplace_back(-total, b, id);
        }
      }
      tops[b] = Position(top);
      rows.push_back({sum, &tops[b]});
    }
    std::sort(live.begin(), live.end());
    live.resize(std::min(live.size(), width));
    const int32_t ends[] = {5, 2};
    BeamSelection selection;
    SelectBeams(rows, width, ends, selection);
    EXPECT_EQ(selection.completed, completed);
    ASSERT_EQ(selection.live.size(), live.size());
    for (size_t i = 0; i < live.size(); ++i) {
      const auto& [negated, beam, id] = live[i];
      EXPECT_EQ(selection.live[i], (BeamCandidate{beam, id, -negated}));
    }
  }
}

TEST(BeamSearchTest, ImpossibleTokensAreNotCandidates) {
  const float inf = std::numeric_limits<float>::infinity();
  const Logprobs top = Position({{4, -1.0f}, {-1, -inf}, {5, -inf}});
  const BeamRow row = {0.0, &top};
  const int32_t end = 5;
  BeamSelection selection;
  SelectBeams({&row, 1}, 3, {&end, 1}, selection);
  EXPECT_TRUE(selection.completed.empty());
  ASSERT_EQ(selection.live.size(), 1u);
  EXPECT_EQ(selection.live[0].token_id, 4);
}

TEST(BeamSearchTest, ScoreDividesByThePowerOfTheLength) {
  EXPECT_EQ(BeamScore(-6.0, 3, 1.0), -2.0);
  EXPECT_EQ(BeamScore(-6.0, 3, 0.0), -6.0);
  EXPECT_EQ(BeamScore(-6.0, 2, 2.0), -1.5);
  EXPECT_EQ(BeamScore(-6.0, 2, -1.0), -12.0);
}

TEST(BeamSearchTest, KeepsTheBestAndOfEqualOnesTheEarlier) {
  std::vector<BeamHypothesis> best;
  int32_t next = 0;
  for (const double score : {-2.0, -1.0, -2.0, -3.0, -1.0}) {
    AddHypothesis({.token_ids = {next++}, .score = score}, 4, best);
  }
  std::vector<int32_t> order;
  for (const BeamHypothesis& hypothesis : best) order.push_back(hypothesis.token_ids[0]);
  EXPECT_EQ(order, (std::vector<int32_t>{1, 4, 0, 2}));
}

}  // namespace
}  // namespace vllm
