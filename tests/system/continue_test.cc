// Tests RequestOptions::prior_output_token_ids: a request that continues after its first k tokens gives the remaining
// tokens and text of the whole run, for every k and in any batch. The model is app/guide_model.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/temp_directory.h"
#include "tests/support/test_isa.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm {
namespace {

struct Whole {
  std::string text;
  std::vector<int32_t> token_ids;
  FinishReason finish_reason = FinishReason::kNone;
};

class ContinueTest : public testing::Test {
 protected:
  static std::string Directory() { return std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model"; }

  void SetUp() override { tokenizer_ = tokenizer::LoadTokenizerJson(Directory() + "/tokenizer.json"); }

  std::unique_ptr<LLMEngine> MakeEngine(int64_t num_blocks = 0, int64_t max_num_batched_tokens = 2048) {
    VllmConfig config;
    config.model = LoadModelConfig(Directory());
    config.scheduler.max_num_batched_tokens = max_num_batched_tokens;
    config.cache.kv_cache_memory_bytes = int64_t{64} << 20;
    if (num_blocks > 0) config.cache.num_blocks_override = num_blocks;
    config.Finalize();
    config = testing_support::WithTestIsa(config);
    return std::make_unique<LLMEngine>(config, tokenizer_, MakeThreadClient(config, MakeExecutor));
  }

  static std::map<std::string, Whole> Run(LLMEngine& engine) {
    std::map<std::string, Whole> results;
    while (engine.HasUnfinishedRequests()) {
      for (const RequestOutput& output : engine.Step()) {
        const CompletionOutput& completion = output.outputs.at(0);
        if (output.finished) {
          results[output.request_id] = {std::string(completion.text), completion.token_ids, completion.finish_reason};
        }
      }
    }
    return results;
  }

  // Runs the request, and then its continuations after every number of tokens, all in one batch.
  void ExpectSameAfterEveryToken(LLMEngine& engine, SamplingParams params) {
    const Prompt prompt = TextPrompt{"How do I run a batch of prompts?"};
    engine.AddRequest("whole", prompt, params);
    const Whole whole = Run(engine).at("whole");
    ASSERT_GE(whole.token_ids.size(), 3u);
    for (size_t k = 1; k < whole.token_ids.size(); ++k) {
      RequestOptions options;
      options.prior_output_token_ids.assign(whole.token_ids.begin(),
                                            whole.token_ids.begin() + static_cast<std::ptrdiff_t>(k));
      engine.AddRequest("after " + std::to_string(k), prompt, params, options);
    }
    const std::map<std::string, Whole> rests = Run(engine);
    for (size_t k = 1; k < whole.token_ids.size(); ++k) {
      const Whole& rest = rests.at("after " + std::to_string(k));
      const std::vector<int32_t> expected(whole.token_ids.begin() + static_cast<std::ptrdiff_t>(k),
                                          whole.token_ids.end());
      EXPECT_EQ(rest.token_ids, expected) << k;
      EXPECT_EQ(rest.finish_reason, whole.finish_reason) << k;
      EXPECT_TRUE(whole.text.ends_with(rest.text)) << k << ": " << rest.text;
    }
  }

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
};

SamplingParams Sampled() {
  SamplingParams params;
  params.output_kind = RequestOutputKind::kFinalOnly;
  params.temperature = 0.9;
  params.top_p = 0.95;
  params.seed = 7;
  params.max_tokens = 40;
  return params;
}

TEST_F(ContinueTest, GreedyTokensAreTheSame) {
  SamplingParams params = Sampled();
  params.temperature = 0.0;
  params.ignore_eos = true;
  ExpectSameAfterEveryToken(*MakeEngine(), params);
}

TEST_F(ContinueTest, SampledTokensAreTheSame) { ExpectSameAfterEveryToken(*MakeEngine(), Sampled()); }

TEST_F(ContinueTest, PenaltiesAndMinTokensCountThePriorTokens) {
  SamplingParams params = Sampled();
  params.presence_penalty = 0.7;
  params.frequency_penalty = 0.5;
  params.repetition_penalty = 1.2;
  params.min_tokens = 35;
  ExpectSameAfterEveryToken(*MakeEngine(), params);
}

TEST_F(ContinueTest, SmallCachesAndBudgetsChangeNothing) {
  ExpectSameAfterEveryToken(*MakeEngine(/*num_blocks=*/12, /*max_num_batched_tokens=*/16), Sampled());
}

TEST_F(ContinueTest, StopStringsMayBeginInThePriorText) {
  const auto engine = MakeEngine();
  SamplingParams params = Sampled();
  params.temperature = 0.0;
  params.ignore_eos = true;
  const Prompt prompt = TextPrompt{"How do I run a batch of prompts?"};
  engine->AddRequest("free", prompt, params);
  const Whole free = Run(*engine).at("free");
  // A stop string that several tokens make up.
  ASSERT_GE(free.text.size(), 20u);
  params.stop = {free.text.substr(8, 9)};
  engine->AddRequest("whole", prompt, params);
  const Whole whole = Run(*engine).at("whole");
  ASSERT_EQ(whole.finish_reason, FinishReason::kStop);
  for (size_t k = 1; k < whole.token_ids.size(); ++k) {
    RequestOptions options;
    options.prior_output_token_ids.assign(whole.token_ids.begin(),
                                          whole.token_ids.begin() + static_cast<std::ptrdiff_t>(k));
    engine->AddRequest("rest", prompt, params, options);
    const Whole rest = Run(*engine).at("rest");
    EXPECT_EQ(rest.token_ids.size(), whole.token_ids.size() - k);
    EXPECT_EQ(rest.finish_reason, FinishReason::kStop);
    EXPECT_EQ(rest.text.find(params.stop[0]), std::string::npos);
  }
}

TEST_F(ContinueTest, InvalidPriorTokensAreRejected) {
  const auto engine = MakeEngine();
  const auto error = [&](std::vector<int32_t> prior, const SamplingParams& params) {
    RequestOptions options;
    options.prior_output_token_ids = std::move(prior);
    return MessageOf<RequestError>([&] { engine->AddRequest("id", TextPrompt{"hello"}, params, options); });
  };
  SamplingParams params = Sampled();
  EXPECT_EQ(error({1 << 30}, params).rfind("prior_output_token_ids: token id outside the vocabulary", 0), 0u);
  EXPECT_EQ(error({-1}, params).rfind("prior_output_token_ids: token id outside the vocabulary", 0), 0u);
  params.max_tokens = 2;
  EXPECT_NE(error({5, 6}, params).find("must be fewer than 2"), std::string::npos) << error({5, 6}, params);
  params.n = 2;
  EXPECT_NE(error({5}, params).find("n must be 1"), std::string::npos);
}

}  // namespace
}  // namespace vllm
