#include "engine/spec_decode/ngram_proposer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/random_values.h"

namespace vllm {
namespace {

using TokenIds = std::vector<int32_t>;

TokenIds Propose(NgramProposer& proposer, const TokenIds& prompt, const TokenIds& output, int64_t max_drafts) {
  Drafts drafts;
  const DraftRequest request{1, prompt, output, max_drafts};
  proposer.Propose({&request, 1}, drafts);
  EXPECT_EQ(drafts.num_requests(), 1u);
  EXPECT_EQ(drafts.probabilities.size(), drafts.token_ids.size());
  return drafts.token_ids;
}

class NgramProposerTest : public testing::Test, protected testing_support::RandomValues {
 protected:
  NgramProposerTest() : RandomValues(11) {}
};

TEST_F(NgramProposerTest, DraftsEqualThoseOfVllm) {
  std::ifstream file(VLLMCLI_TEST_DATA "/spec_decode/ngram_drafts.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["cases"].size(), 400u);
  for (const nlohmann::json& test : golden["cases"]) {
    const TokenIds token_ids = test["token_ids"];
    NgramProposer proposer(test["min"], test["max"]);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto split = token_ids.begin() + Int(0, static_cast<int64_t>(token_ids.size()));
      const TokenIds prompt(token_ids.begin(), split);
      const TokenIds output(split, token_ids.end());
      EXPECT_EQ(Propose(proposer, prompt, output, test["k"]), test["drafts"].get<TokenIds>())
          << test.dump() << ", prompt of " << prompt.size();
    }
  }
}

TEST_F(NgramProposerTest, LongestMatchWins) {
  NgramProposer proposer(1, 3);
  EXPECT_EQ(Propose(proposer, {3, 9, 2, 3, 8, 1, 2, 3, 7, 1, 2, 3}, {}, 1), TokenIds({7}));
}

TEST_F(NgramProposerTest, EarliestOfEqualMatchesWins) {
  NgramProposer proposer(2, 2);
  EXPECT_EQ(Propose(proposer, {1, 2, 7, 1, 2, 8}, {1, 2}, 1), TokenIds({7}));
}

TEST_F(NgramProposerTest, MatchOfMaxTokensWinsOverLaterAndLongerOnes) {
  NgramProposer proposer(1, 2);
  EXPECT_EQ(Propose(proposer, {1, 2, 7, 0, 1, 2, 8, 0, 1, 2}, {}, 1), TokenIds({7}));
}

TEST_F(NgramProposerTest, MatchMayOverlapTheLastTokens) {
  NgramProposer proposer(3, 3);
  EXPECT_EQ(Propose(proposer, {4, 4}, {4, 4}, 8), TokenIds({4}));
}

TEST_F(NgramProposerTest, TextWithoutAMatchGetsNoDrafts) {
  NgramProposer proposer(2, 4);
  EXPECT_EQ(Propose(proposer, {1, 2, 3}, {1, 3}, 8), TokenIds());
  EXPECT_EQ(Propose(proposer, {1}, {}, 8), TokenIds());
}

TEST_F(NgramProposerTest, EachRequestGetsItsOwnRange) {
  NgramProposer proposer(1, 1);
  const TokenIds a = {1, 2, 1};
  const TokenIds b = {1, 2, 3};
  const TokenIds c = {5, 6, 5};
  const DraftRequest requests[] = {{1, a, {}, 1}, {2, b, {}, 4}, {3, c, {}, 4}};
  Drafts drafts;
  proposer.Propose(requests, drafts);
  EXPECT_EQ(drafts.token_ids, TokenIds({2, 6, 5}));
  EXPECT_EQ(drafts.offsets, std::vector<size_t>({0, 1, 1, 3}));
}

}  // namespace
}  // namespace vllm
