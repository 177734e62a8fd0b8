// Tests that a model without attention (Mamba-2) needs the same memory for any number of tokens.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/model_loader/hf/hf_config.h"
#include "tests/system/run_requests.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm {
namespace {

using testing_support::RunRequests;
using testing_support::TestRequest;

VllmConfig Config(int64_t max_num_batched_tokens, int64_t num_blocks, bool prefix_caching, int64_t max_num_seqs = 1) {
  VllmConfig config;
  config.model = LoadModelConfig(std::string(VLLMCLI_TEST_DATA) + "/models/mamba2");
  config.scheduler.max_num_seqs = max_num_seqs;
  config.scheduler.max_num_batched_tokens = max_num_batched_tokens;
  config.cache.enable_prefix_caching = prefix_caching;
  config.cache.num_blocks_override = num_blocks;
  config.parallel.threads_per_rank = 1;
  config.Finalize();
  return config;
}

std::shared_ptr<const tokenizer::Tokenizer> LoadTokenizer() {
  return tokenizer::LoadTokenizerJson(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model/tokenizer.json");
}

TestRequest RequestOf(const std::string& id, int32_t seed, int32_t num_prompt_tokens, int max_tokens) {
  TestRequest request;
  request.id = id;
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < num_prompt_tokens; ++i) prompt.push_back(3 + (i + seed) * 7919 % 61);
  request.prompt = prompt;
  request.params.temperature = 0.0;
  request.params.max_tokens = max_tokens;
  request.params.ignore_eos = true;
  request.params.logprobs = 2;
  return request;
}

TEST(FixedStateTest, ALongContextNeedsNoMoreBlocksThanAShortOne) {
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer = LoadTokenizer();
  const TestRequest request = RequestOf("long", 0, 20000, 50);
  const auto expected = RunRequests(Config(2048, 4000, false), tokenizer, {request}).outputs;
  EXPECT_EQ(expected.at("long").find("rejected"), std::string::npos);
  // 15 blocks for a state, and those of a step of 32 tokens. The KV of this context would take 1,253 blocks.
  for (const bool caching : {false, true}) {
    EXPECT_EQ(RunRequests(Config(32, 19, caching), tokenizer, {request}).outputs, expected) << caching;
  }
}

TEST(FixedStateTest, AMillionTokensOfContextsFitInTheStatesOfFourRequests) {
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer = LoadTokenizer();
  std::vector<TestRequest> requests;
  for (int32_t i = 0; i < 50; ++i) requests.push_back(RequestOf(std::to_string(i), i, 20000, 5));
  // The KV of these contexts would take 62,516 blocks.
  const testing_support::RunResult result = RunRequests(Config(256, 124, false, 4), tokenizer, requests);
  EXPECT_EQ(result.stats.num_preemptions, 0);
  for (const size_t i : {size_t{0}, size_t{23}, size_t{49}}) {
    const auto alone = RunRequests(Config(2048, 4000, false), tokenizer, {requests[i]}).outputs;
    EXPECT_EQ(alone.at(requests[i].id).find("rejected"), std::string::npos);
    EXPECT_EQ(result.outputs.at(requests[i].id), alone.at(requests[i].id)) << i;
  }
}

}  // namespace
}  // namespace vllm
