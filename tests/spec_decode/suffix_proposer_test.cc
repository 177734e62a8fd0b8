#include "engine/spec_decode/suffix_proposer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/support/allocation_counter.h"
#include "tests/support/random_values.h"

namespace vllm {
namespace {

using TokenIds = std::vector<int32_t>;

SpeculativeConfig Config() {
  SpeculativeConfig config;
  config.method = SpeculativeMethod::kSuffix;
  config.adaptive = false;  // an adaptive proposer extends its drafts, see the last tests
  return config;
}

Drafts Propose(SuffixProposer& proposer, RequestId id, const TokenIds& prompt, const TokenIds& output,
               int64_t max_drafts = 24) {
  Drafts drafts;
  const DraftRequest request{id, prompt, output, max_drafts};
  proposer.Propose({&request, 1}, drafts);
  EXPECT_EQ(drafts.num_requests(), 1u);
  EXPECT_EQ(drafts.probabilities.size(), drafts.token_ids.size());
  return drafts;
}

TokenIds Range(int32_t begin, int32_t end) {
  TokenIds tokens(static_cast<size_t>(end - begin));
  std::iota(tokens.begin(), tokens.end(), begin);
  return tokens;
}

struct Draft {
  TokenIds token_ids;
  std::vector<float> probabilities;
  double score = 0.0;
  size_t match_length = 0;
};

// Searches all positions of the texts, in place of a MatchFinder.
Draft BestDraft(const std::vector<TokenIds>& texts, const TokenIds& context, const SpeculativeConfig& config,
                int64_t max_drafts) {
  Draft best;
  const auto depth = static_cast<size_t>(config.suffix_decoding_max_tree_depth);
  for (size_t length = std::min(context.size(), depth); length >= 2; --length) {
    std::vector<std::pair<size_t, TokenIds>> following;  // the length of the match, capped; the tokens after it
    for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
      for (size_t position = text->size(); position-- > 2;) {
        size_t equal = 0;
        while (equal < std::min({position, context.size(), depth}) &&
               (*text)[position - 1 - equal] == context[context.size() - 1 - equal]) {
          ++equal;
        }
        if (equal < length) continue;
        following.emplace_back(equal, TokenIds(text->begin() + static_cast<std::ptrdiff_t>(position), text->end()));
      }
    }
    std::stable_sort(following.begin(), following.end(), [](auto& a, auto& b) { return a.first > b.first; });
    // Only the lengths of matches are tried.
    if (following.empty() || following.back().first != length) continue;
    Draft draft;
    draft.match_length = length;
    double probability = 1.0;
    const auto max_tokens =
        static_cast<size_t>(static_cast<double>(length) * config.suffix_decoding_max_spec_factor + 1e-6);
    while (draft.token_ids.size() < std::min(max_tokens, static_cast<size_t>(max_drafts))) {
      const size_t n = draft.token_ids.size();
      std::erase_if(following, [&](const auto& match) { return match.second.size() <= n; });
      if (following.empty()) break;
      std::map<int32_t, size_t> counts;
      for (const auto& match : following) ++counts[match.second[n]];
      int32_t next = following[0].second[n];
      for (const auto& match : following) {
        if (counts[match.second[n]] > counts[next]) next = match.second[n];
      }
      const double share = static_cast<double>(counts[next]) / static_cast<double>(following.size());
      probability *= share;
      if (probability < config.suffix_decoding_min_token_prob) break;
      std::erase_if(following, [&](const auto& match) { return match.second[n] != next; });
      const auto num_equal = static_cast<double>(length + n);
      draft.token_ids.push_back(next);
      draft.probabilities.push_back(static_cast<float>(share * num_equal / (num_equal + 1.0)));
      draft.score += probability;
    }
    if (draft.score > best.score) best = draft;
  }
  return best;
}

class SuffixProposerTest : public testing::Test, protected testing_support::RandomValues {
 protected:
  SuffixProposerTest() : RandomValues(13) {}
};

// The texts are so short that all positions are candidates.
TEST_F(SuffixProposerTest, DraftsEqualThoseOfASearch) {
  for (int repeat = 0; repeat < 3000; ++repeat) {
    SpeculativeConfig config = Config();
    config.suffix_decoding_max_tree_depth = Int(2, 24);
    config.suffix_decoding_max_spec_factor = static_cast<double>(Int(1, 8)) / 4.0;
    config.suffix_decoding_min_token_prob = static_cast<double>(Int(0, 10)) / 10.0;
    const int64_t alphabet = Int(1, 4);
    const int64_t max_drafts = Int(1, 12);
    SuffixProposer proposer(config);

    std::vector<TokenIds> outputs;
    for (RequestId id = 1; id <= 2; ++id) {
      outputs.push_back(Tokens(Int(1, 10), alphabet));
      Propose(proposer, id, Tokens(Int(1, 10), alphabet), {});
      proposer.Finish(id, outputs.back());
    }
    const TokenIds prompt = Tokens(Int(1, 20), alphabet);
    outputs.push_back(Tokens(Int(1, 12), alphabet));
    TokenIds text = prompt;
    text.insert(text.end(), outputs.back().begin(), outputs.back().end());

    const Draft local = BestDraft({text}, text, config, max_drafts);
    const Draft global = BestDraft(outputs, text, config, max_drafts);
    const bool global_wins =
        global.score > local.score || (global.score == local.score && global.match_length > local.match_length);
    const Draft& expected = global_wins ? global : local;
    const Drafts drafts = Propose(proposer, 3, prompt, outputs.back(), max_drafts);
    ASSERT_EQ(drafts.token_ids, expected.token_ids);
    ASSERT_EQ(drafts.probabilities, expected.probabilities);
  }
}

TEST_F(SuffixProposerTest, OutputThatCopiesThePromptGetsThePromptsNextTokens) {
  SuffixProposer proposer(Config());
  EXPECT_EQ(Propose(proposer, 1, Range(0, 100), {40, 41, 42}).token_ids, TokenIds({43, 44, 45}));
}

TEST_F(SuffixProposerTest, DraftIsNotLongerThanTheMatchTimesTheFactor) {
  SpeculativeConfig config = Config();
  config.suffix_decoding_max_spec_factor = 1.5;
  SuffixProposer proposer(config);
  EXPECT_EQ(Propose(proposer, 1, Range(0, 100), {40, 41, 42}).token_ids, TokenIds({43, 44, 45, 46}));
}

TEST_F(SuffixProposerTest, DraftIsNotLongerThanTheRequestAllows) {
  SuffixProposer proposer(Config());
  EXPECT_EQ(Propose(proposer, 1, Range(0, 100), Range(40, 50), 2).token_ids, TokenIds({50, 51}));
}

TEST_F(SuffixProposerTest, MatchesAreCutAtTheTreeDepth) {
  SpeculativeConfig config = Config();
  config.suffix_decoding_max_tree_depth = 4;
  SuffixProposer proposer(config);
  EXPECT_EQ(Propose(proposer, 1, Range(0, 100), Range(40, 50)).token_ids, Range(50, 54));
}

TEST_F(SuffixProposerTest, ProbabilityGrowsWithTheTokensBeforeIt) {
  SuffixProposer proposer(Config());
  const Drafts drafts = Propose(proposer, 1, Range(0, 100), {40, 41, 42});
  EXPECT_EQ(drafts.probabilities, std::vector<float>({3.0f / 4.0f, 4.0f / 5.0f, 5.0f / 6.0f}));
}

TEST_F(SuffixProposerTest, MostFrequentNextTokenWins) {
  SuffixProposer proposer(Config());
  const Drafts drafts = Propose(proposer, 1, {1, 2, 7, 1, 2, 7, 1, 2, 8, 1, 2}, {}, 1);
  EXPECT_EQ(drafts.token_ids, TokenIds({7}));
}

TEST_F(SuffixProposerTest, LatestOfEquallyFrequentTokensWins) {
  SuffixProposer proposer(Config());
  EXPECT_EQ(Propose(proposer, 1, {0, 1, 2, 7, 3, 1, 2, 8, 4, 1, 2}, {}, 1).token_ids, TokenIds({8}));
}

TEST_F(SuffixProposerTest, UnlikelyTokensAreNotDrafted) {
  SpeculativeConfig config = Config();
  config.suffix_decoding_min_token_prob = 0.6;
  SuffixProposer proposer(config);
  EXPECT_EQ(Propose(proposer, 1, {0, 1, 2, 7, 3, 1, 2, 8, 4, 1, 2}, {}).token_ids, TokenIds());
}

TEST_F(SuffixProposerTest, RequestLearnsFromAFinishedOne) {
  SuffixProposer proposer(Config());
  Propose(proposer, 1, {1}, {2});
  proposer.Finish(1, Range(2, 100));
  EXPECT_EQ(Propose(proposer, 2, {500}, {60, 61, 62}).token_ids, TokenIds({63, 64, 65}));
}

TEST_F(SuffixProposerTest, RequestLearnsFromARunningOne) {
  SuffixProposer proposer(Config());
  Propose(proposer, 1, {1}, Range(2, 100));
  EXPECT_EQ(Propose(proposer, 2, {500}, {60, 61, 62}).token_ids, TokenIds({63, 64, 65}));
}

TEST_F(SuffixProposerTest, PromptIsOnlyUsedForTheRequestItself) {
  SuffixProposer proposer(Config());
  Propose(proposer, 1, Range(0, 100), {500});
  proposer.Finish(1, TokenIds{500, 501});
  EXPECT_EQ(Propose(proposer, 2, {500}, {60, 61, 62}).token_ids, TokenIds());
}

TEST_F(SuffixProposerTest, WithoutCachedRequestsOnlyTheRequestItselfIsUsed) {
  SpeculativeConfig config = Config();
  config.suffix_decoding_max_cached_requests = 0;
  SuffixProposer proposer(config);
  Propose(proposer, 1, {1}, Range(2, 100));
  proposer.Finish(1, Range(2, 200));
  EXPECT_EQ(Propose(proposer, 2, {500}, {60, 61, 62}).token_ids, TokenIds());
  EXPECT_EQ(Propose(proposer, 3, {60, 61, 62}, {60, 61}).token_ids, TokenIds({62, 60}));
}

TEST_F(SuffixProposerTest, OldestCachedRequestIsForgotten) {
  SpeculativeConfig config = Config();
  config.suffix_decoding_max_cached_requests = 2;
  SuffixProposer proposer(config);
  for (RequestId id = 1; id <= 2; ++id) {
    Propose(proposer, id, {500}, {0});
    proposer.Finish(id, id == 1 ? Range(0, 100) : Range(100, 200));
  }
  EXPECT_EQ(Propose(proposer, 3, {500}, {160, 161}).token_ids, TokenIds({162, 163}));
  EXPECT_EQ(Propose(proposer, 4, {500}, {60, 61}).token_ids, TokenIds());
}

TEST_F(SuffixProposerTest, EachOutputTokenIsAppendedOnce) {
  SuffixProposer proposer(Config());
  const TokenIds prompt = {1, 2, 7, 3, 1, 2, 8, 4};
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Drafts drafts = Propose(proposer, 1, prompt, {1, 2}, 1);
    EXPECT_EQ(drafts.token_ids, TokenIds({8}));
    EXPECT_EQ(drafts.probabilities, std::vector<float>({0.5f * 2.0f / 3.0f}));
  }
}

TEST_F(SuffixProposerTest, FinishedRequestsUseNoMemoryForTheirPrompts) {
  SuffixProposer proposer(Config());
  const size_t memory_bytes = proposer.memory_bytes();
  Propose(proposer, 1, Tokens(10000, 1000), {});
  EXPECT_GE(proposer.memory_bytes(), memory_bytes + 10000 * sizeof(int32_t));
  EXPECT_LE(proposer.memory_bytes(), memory_bytes + 10000 * 20);
  proposer.Finish(1, {});
  EXPECT_EQ(proposer.memory_bytes(), memory_bytes);
}

TEST_F(SuffixProposerTest, RequestsInAnyOrderGetValidDrafts) {
  struct Running {
    RequestId id;
    TokenIds prompt;
    TokenIds output;
    int64_t max_drafts;
  };
  SuffixProposer proposer(Config());
  std::vector<Running> running;
  RequestId next_id = 1;
  Drafts drafts;
  std::vector<DraftRequest> requests;
  size_t num_drafts = 0;
  for (int step = 0; step < 2000; ++step) {
    while (running.size() < 8) running.push_back({next_id++, Tokens(Int(1, 40), 3), {}, 0});
    std::shuffle(running.begin(), running.end(), random_);
    requests.clear();
    for (Running& request : running) {
      const TokenIds tokens = Tokens(Int(0, 4), 3);
      request.output.insert(request.output.end(), tokens.begin(), tokens.end());
      request.max_drafts = Int(1, 24);
      // Some requests skip the step.
      if (Int(0, 3) > 0) requests.push_back({request.id, request.prompt, request.output, request.max_drafts});
    }
    drafts.Clear();
    proposer.Propose(requests, drafts);
    ASSERT_EQ(drafts.num_requests(), requests.size());
    ASSERT_EQ(drafts.offsets.back(), drafts.token_ids.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_LE(drafts.offsets[i], drafts.offsets[i + 1]);
      ASSERT_LE(drafts.offsets[i + 1] - drafts.offsets[i], static_cast<size_t>(requests[i].max_drafts));
    }
    for (const int32_t token_id : drafts.token_ids) ASSERT_TRUE(token_id >= 0 && token_id < 3) << token_id;
    for (const float probability : drafts.probabilities) ASSERT_TRUE(probability > 0.0f && probability <= 1.0f);
    num_drafts += drafts.token_ids.size();
    if (Int(0, 9) == 0) {
      proposer.Finish(running.back().id, running.back().output);
      running.pop_back();
    }
  }
  EXPECT_GT(num_drafts, 2000u);
}

TEST_F(SuffixProposerTest, ProposeAllocatesOnlyToGrow) {
  SuffixProposer proposer(Config());
  const TokenIds prompt = Tokens(1000, 50);
  TokenIds output = Tokens(4000, 50);
  Drafts drafts;
  drafts.token_ids.reserve(100);
  drafts.probabilities.reserve(100);
  drafts.offsets.reserve(100);
  uint64_t num_allocations = 0;
  for (size_t num_outputs = 1; num_outputs <= output.size(); ++num_outputs) {
    const DraftRequest request{1, prompt, std::span(output).first(num_outputs), 24};
    drafts.Clear();
    const uint64_t before = testing_support::NumAllocations();
    proposer.Propose({&request, 1}, drafts);
    num_allocations += testing_support::NumAllocations() - before;
  }
  // Two histories of six arrays, which double, and the scratch.
  EXPECT_LE(num_allocations, 150u);
}

SpeculativeConfig AdaptiveConfig() {
  SpeculativeConfig config = Config();
  config.adaptive = true;
  return config;
}

TEST(AdaptiveSuffixProposerTest, DraftsContinueAfterAnotherSearch) {
  // A match of two tokens gives two tokens, with which it becomes a match of four, and then of eight.
  TokenIds prompt = Range(1, 21);
  prompt.insert(prompt.end(), {50, 1});
  SuffixProposer proposer(AdaptiveConfig());
  const Drafts drafts = Propose(proposer, 1, prompt, {2});
  TokenIds rest = Range(3, 21);
  rest.insert(rest.end(), {50, 1, 2});  // the fourth search would allow 16 tokens
  EXPECT_EQ(drafts.token_ids, rest);
  EXPECT_FLOAT_EQ(drafts.probabilities[0], 2.0f / 3);
  EXPECT_FLOAT_EQ(drafts.probabilities[2], 4.0f / 5);
  EXPECT_FLOAT_EQ(drafts.probabilities[13], 15.0f / 16);
  SuffixProposer limited(AdaptiveConfig());
  EXPECT_EQ(Propose(limited, 1, prompt, {2}, 5).token_ids, Range(3, 8));
}

TEST(AdaptiveSuffixProposerTest, DraftsUseTheSuccessorOfOneToken) {
  SuffixProposer proposer(AdaptiveConfig());
  // 5 was followed by 6 twice, and 6 then by 7 and by 8. The pair 9, 5 is new.
  const Drafts drafts = Propose(proposer, 1, {5, 6, 7, 5, 6, 8, 9}, {5});
  ASSERT_GE(drafts.token_ids.size(), 2u);
  EXPECT_EQ(drafts.token_ids[0], 6);
  EXPECT_FLOAT_EQ(drafts.probabilities[0], 0.5f * 2 / 3);
  EXPECT_EQ(drafts.token_ids[1], 8);  // of the matches of 5, 6 the latest
  EXPECT_TRUE(Propose(proposer, 2, {5, 6, 7}, {9}).token_ids.empty());
}

TEST(AdaptiveSuffixProposerTest, DraftsAreBoundedForARepeatedToken) {
  SuffixProposer proposer(AdaptiveConfig());
  const Drafts drafts = Propose(proposer, 1, TokenIds(1000, 3), {3}, 100);
  EXPECT_GT(drafts.token_ids.size(), 24u);
  EXPECT_LE(drafts.token_ids.size(), 4u * 24);
  for (const int32_t token : drafts.token_ids) EXPECT_EQ(token, 3);
}

TEST(SuccessorTableTest, ASuccessorWithHitsSurvivesAsManyExceptions) {
  SuccessorTable table;
  EXPECT_EQ(table.Find(1).token_id, -1);
  table.Add(1, 2);
  table.Add(1, 3);
  EXPECT_EQ(table.Find(1).token_id, 3);
  table.Add(1, 3);
  table.Add(1, 3);
  EXPECT_EQ(table.Find(1).num_hits, 2);
  table.Add(1, 2);
  table.Add(1, 2);
  EXPECT_EQ(table.Find(1).token_id, 3);
  table.Add(1, 2);
  EXPECT_EQ(table.Find(1).token_id, 2);
  for (int i = 0; i < 20; ++i) table.Add(1, 2);
  EXPECT_EQ(table.Find(1).num_hits, 7);
}

}  // namespace
}  // namespace vllm
