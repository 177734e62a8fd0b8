// Tests vectors and scores in the whole engine, on the models of tests/data/pooling and on the bundled model. Their
// bits must not depend on other requests, on the size of a step, on the number of ranks or on the prefix cache. The
// expected values of sentence-transformers are those of pooling_program_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/core/thread_client.h"
#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/pooling/sentence_transformers.h"
#include "tests/system/guide_config.h"
#include "tests/system/mixed_requests.h"

namespace vllm {
namespace {

using testing_support::GuideConfig;

struct PoolingSetup {
  int64_t max_num_batched_tokens = 2048;
  int64_t max_num_seqs = 128;
  int64_t ranks = 1;
  int64_t threads = 1;
  int64_t long_prefill_token_threshold = 0;
  bool prefix_caching = true;
  std::optional<int64_t> num_blocks = {};
  bool reserve_full_isl = true;
  std::optional<PoolingType> type = {};
  bool quantizes = false;
};

VllmConfig ConfigOf(const std::string& name, const PoolingSetup& setup) {
  VllmConfig config;
  const std::string directory = std::string(VLLMCLI_SOURCE_DIR) + "/tests/data/pooling/" + name;
  if (const std::string gguf = directory + "/model.gguf"; std::filesystem::exists(gguf)) {
    config.model = LoadGgufConfig(gguf);
  } else {
    config.model = LoadModelConfig(directory);
    ReadSentenceTransformers(config.model);
  }
  if (setup.type) config.model.pooler.types = {*setup.type};
  if (setup.quantizes) config.model.quantization.method = QuantizationMethod::kInt8;
  config.scheduler.max_num_batched_tokens = setup.max_num_batched_tokens;
  config.scheduler.max_num_seqs = setup.max_num_seqs;
  config.scheduler.long_prefill_token_threshold = setup.long_prefill_token_threshold;
  config.cache.enable_prefix_caching = setup.prefix_caching;
  config.cache.num_blocks_override = setup.num_blocks;
  config.scheduler.scheduler_reserve_full_isl = setup.reserve_full_isl;
  config.cache.kv_cache_memory_bytes = int64_t{64} << 20;
  config.parallel.tensor_parallel_size = setup.ranks;
  config.parallel.threads_per_rank = setup.threads;
  config.Finalize();
  return config;
}

// Texts of 1 to 48 tokens, some of which begin with the same 20.
std::vector<PoolingPrompt> Prompts(int64_t type_vocab_size, int64_t vocab_size = 80) {
  const auto num_words = static_cast<int32_t>(std::min<int64_t>(vocab_size - 5, 70));
  std::vector<PoolingPrompt> prompts;
  for (int32_t i = 0; i < 24; ++i) {
    PoolingPrompt& prompt = prompts.emplace_back();
    const int32_t length = i == 0 ? 1 : i == 1 ? 48 : 1 + i * 17 % 48;
    for (int32_t j = 0; j < length; ++j) {
      prompt.token_ids.push_back(5 + (i % 2 == 0 && j < 20 ? j * 7 : i * 31 + j * 13) % num_words);
      if (type_vocab_size > 1) prompt.token_type_ids.push_back(j > length / 2 ? 1 : 0);
    }
  }
  return prompts;
}

using Vectors = std::vector<std::vector<float>>;

// Runs all prompts, one after another or together.
Vectors RunPrompts(const VllmConfig& config, const std::vector<PoolingPrompt>& prompts, const PoolingParams& params,
                   bool one_at_a_time, int64_t* num_cached_tokens = nullptr) {
  LLMEngine engine(config, nullptr, MakeThreadClient(config, MakeExecutor));
  Vectors vectors(prompts.size());
  const auto step = [&] {
    for (const RequestOutput& output : engine.Step()) {
      EXPECT_TRUE(output.finished);
      EXPECT_EQ(output.error, "");
      EXPECT_EQ(output.outputs.at(0).finish_reason, FinishReason::kStop);
      EXPECT_TRUE(output.outputs.at(0).token_ids.empty());
      vectors[std::stoul(output.request_id)] = output.pooled;
      if (num_cached_tokens != nullptr) *num_cached_tokens += output.num_cached_tokens;
    }
  };
  for (size_t i = 0; i < prompts.size(); ++i) {
    engine.AddPoolingRequest(std::to_string(i), prompts[i], params);
    while (one_at_a_time && engine.HasUnfinishedRequests()) step();
  }
  while (engine.HasUnfinishedRequests()) step();
  return vectors;
}

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(VLLMCLI_SOURCE_DIR) + "/tests/data/pooling"))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

class PoolingTest : public testing::TestWithParam<std::string> {
 protected:
  PoolingTest() {
    const ModelConfig& model = ConfigOf(GetParam(), {}).model;
    prompts_ = Prompts(model.type_vocab_size, model.vocab_size);
    if (model.pooler.classifier) params_.task = PoolingTask::kScore;
    alone_ = RunPrompts(ConfigOf(GetParam(), {.prefix_caching = false}), prompts_, params_, /*one_at_a_time=*/true);
  }

  std::vector<PoolingPrompt> prompts_;
  PoolingParams params_;
  Vectors alone_;
};

INSTANTIATE_TEST_SUITE_P(Models, PoolingTest, testing::ValuesIn(CaseNames()),
                         [](const auto& param_info) { return param_info.param; });

TEST_P(PoolingTest, ResultsDoNotDependOnOtherTexts) {
  EXPECT_EQ(RunPrompts(ConfigOf(GetParam(), {}), prompts_, params_, false), alone_);
}

TEST_P(PoolingTest, ResultsDoNotDependOnTheSizeOfAStep) {
  for (const int64_t num_tokens : {7, 48, 100}) {
    EXPECT_EQ(RunPrompts(ConfigOf(GetParam(), {.max_num_batched_tokens = num_tokens, .max_num_seqs = 5}), prompts_,
                         params_, false),
              alone_)
        << num_tokens;
  }
  EXPECT_EQ(RunPrompts(ConfigOf(GetParam(), {.long_prefill_token_threshold = 5}), prompts_, params_, false), alone_);
}

TEST_P(PoolingTest, ResultsDoNotDependOnThreads) {
  EXPECT_EQ(RunPrompts(ConfigOf(GetParam(), {.threads = 3}), prompts_, params_, false), alone_);
}

TEST_P(PoolingTest, ResultsDoNotDependOnTheNumberOfRanks) {
  int num_compared = 0;
  for (const bool quantizes : {false, true}) {
    const Vectors alone = RunPrompts(ConfigOf(GetParam(), {.quantizes = quantizes}), prompts_, params_, false);
    EXPECT_EQ(alone == alone_, !quantizes);
    for (const int64_t ranks : {2, 4}) {
      VllmConfig config;
      try {
        config = ConfigOf(GetParam(), {.ranks = ranks, .quantizes = quantizes});
      } catch (const ConfigError&) {
        continue;  // does not divide the attention heads
      }
      EXPECT_EQ(RunPrompts(config, prompts_, params_, false), alone) << ranks << " ranks, int8 " << quantizes;
      ++num_compared;
    }
  }
  EXPECT_GE(num_compared, 2);
}

TEST_P(PoolingTest, Int8WeightsGiveSimilarResults) {
  const Vectors vectors = RunPrompts(ConfigOf(GetParam(), {.quantizes = true}), prompts_, params_, false);
  for (size_t i = 0; i < vectors.size(); ++i) {
    double dot = 0, a = 0, b = 0;
    for (size_t j = 0; j < vectors[i].size(); ++j) {
      dot += static_cast<double>(vectors[i][j]) * static_cast<double>(alone_[i][j]);
      a += static_cast<double>(vectors[i][j]) * static_cast<double>(vectors[i][j]);
      b += static_cast<double>(alone_[i][j]) * static_cast<double>(alone_[i][j]);
    }
    EXPECT_NE(vectors[i], alone_[i]) << i;
    EXPECT_GE(dot, 0.97 * std::sqrt(a * b)) << i;
  }
}

TEST_P(PoolingTest, ResultsDoNotDependOnPreemption) {
  if (ConfigOf(GetParam(), {}).model.is_encoder) return;  // it has no blocks to run out of
  EXPECT_EQ(RunPrompts(ConfigOf(GetParam(), {.max_num_batched_tokens = 40,
                                             .long_prefill_token_threshold = 10,
                                             .num_blocks = 4,
                                             .reserve_full_isl = false}),
                       prompts_, params_, false),
            alone_);
}

TEST(PoolingEngineTest, DecoderFindsTextsInThePrefixCache) {
  const std::vector<PoolingPrompt> prompts = Prompts(0);
  int64_t num_cached_tokens = 0;
  const Vectors cached = RunPrompts(ConfigOf("qwen3_last", {}), prompts, {}, true, &num_cached_tokens);
  EXPECT_GE(num_cached_tokens, 16 * 7);
  EXPECT_EQ(cached, RunPrompts(ConfigOf("qwen3_last", {.prefix_caching = false}), prompts, {}, true));
}

TEST(PoolingEngineTest, DecoderThatNeedsAllTokensReadsNoPrefixCache) {
  const std::vector<PoolingPrompt> prompts = Prompts(0);
  for (const PoolingType type : {PoolingType::kMean, PoolingType::kCls, PoolingType::kMax}) {
    int64_t num_cached_tokens = 0;
    const Vectors all = RunPrompts(ConfigOf("qwen3_last", {.type = type}), prompts, {}, true, &num_cached_tokens);
    EXPECT_EQ(num_cached_tokens, 0);
    EXPECT_EQ(all, RunPrompts(ConfigOf("qwen3_last", {.max_num_batched_tokens = 5, .type = type}), prompts, {}, false));
    // A preempted text is computed again from its first token.
    EXPECT_EQ(all, RunPrompts(ConfigOf("qwen3_last", {.max_num_batched_tokens = 40,
                                                      .long_prefill_token_threshold = 10,
                                                      .num_blocks = 4,
                                                      .reserve_full_isl = false,
                                                      .type = type}),
                              prompts, {}, false));
  }
}

TEST(PoolingEngineTest, EncoderHasNoKVCache) {
  const VllmConfig config = ConfigOf("bert_mean", {});
  EXPECT_FALSE(config.cache.enable_prefix_caching);
  EXPECT_FALSE(config.scheduler.enable_chunked_prefill);
  LLMEngine engine(config, nullptr, MakeThreadClient(config, MakeExecutor));
  // As many blocks, without memory, as the requests of a step can use.
  EXPECT_EQ(engine.config().cache.num_blocks, 128 * 3);
  EXPECT_EQ(engine.max_model_len(), 48);
}

TEST(PoolingEngineTest, RequestsThatTheModelCannotRunAreRejected) {
  const VllmConfig config = ConfigOf("bert_mean", {});
  LLMEngine engine(config, nullptr, MakeThreadClient(config, MakeExecutor));
  const auto error_of = [&](const PoolingPrompt& prompt, const PoolingParams& params) -> std::string {
    try {
      engine.AddPoolingRequest("a", prompt, params);
    } catch (const RequestError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of({}, {}), "prompt: must have at least one token");
  EXPECT_EQ(error_of({std::vector<int32_t>(49, 7)}, {}), "prompt is 49 tokens, limit 48");
  EXPECT_EQ(error_of({{80}}, {}), "prompt_token_ids: token id outside the vocabulary (80 tokens; id 80)");
  EXPECT_EQ(error_of({{7, 8}, {0}}, {}), "token_type_ids: not one for each token of the prompt");
  EXPECT_EQ(error_of({{7}, {2}}, {}), "token_type_ids: outside 0 to 1 (2)");
  EXPECT_EQ(error_of({{7}}, {.task = PoolingTask::kScore}), "task: the model has no classifier, so it gives no scores");
  EXPECT_EQ(error_of({{7}}, {.dimensions = 33}), "dimensions: outside 1 to 32 (33)");
  EXPECT_THROW(engine.AddRequest("b", std::vector<int32_t>{7}, {}), RequestError);
  EXPECT_FALSE(engine.HasUnfinishedRequests());
}

TEST(PoolingEngineTest, CutVectorIsNormalizedAfterTheCut) {
  const VllmConfig config = ConfigOf("bert_mean", {});
  const std::vector<PoolingPrompt> prompts = {{{2, 9, 10, 11, 3}}};
  const std::vector<float> whole = RunPrompts(config, prompts, {.normalize = false}, true)[0];
  const std::vector<float> cut = RunPrompts(config, prompts, {.dimensions = 8}, true)[0];
  ASSERT_EQ(cut.size(), 8u);
  double squares = 0.0;
  for (size_t i = 0; i < 8; ++i) squares += static_cast<double>(whole[i]) * static_cast<double>(whole[i]);
  for (size_t i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(cut[i], static_cast<float>(whole[i] / std::sqrt(squares)));
}

// Runs texts that are embedded among requests that generate, and returns both results.
std::pair<Vectors, std::vector<std::vector<int32_t>>> RunMixed(const VllmConfig& config, bool one_at_a_time) {
  LLMEngine engine(config, nullptr, MakeThreadClient(config, MakeExecutor));
  Vectors vectors(10);
  std::vector<std::vector<int32_t>> tokens(10);
  const auto step = [&] {
    for (const RequestOutput& output : engine.Step()) {
      const size_t index = std::stoul(output.request_id.substr(1));
      if (output.request_id[0] == 'e') {
        vectors[index] = output.pooled;
      } else if (output.finished) {
        tokens[index] = output.outputs.at(0).token_ids;
      }
    }
  };
  const auto wait = [&] {
    while (one_at_a_time && engine.HasUnfinishedRequests()) step();
  };
  for (int32_t i = 0; i < 10; ++i) {
    std::vector<int32_t> ids;
    for (int32_t j = 0; j < 3 + 7 * i; ++j) ids.push_back(300 + (i * 11 + j * 3) % 900);
    SamplingParams params;
    params.output_kind = RequestOutputKind::kFinalOnly;
    params.max_tokens = 12;
    params.temperature = 0.0;
    params.detokenize = false;
    engine.AddRequest("g" + std::to_string(i), ids, params);
    wait();
    engine.AddPoolingRequest("e" + std::to_string(i), {ids, {}}, {});
    wait();
  }
  while (engine.HasUnfinishedRequests()) step();
  return {vectors, tokens};
}

TEST(PoolingEngineTest, LanguageModelEmbedsAndGeneratesInTheSameSteps) {
  const auto together = RunMixed(GuideConfig(), false);
  const auto alone = RunMixed(GuideConfig(), true);
  EXPECT_EQ(together.first, alone.first);
  EXPECT_EQ(together.second, alone.second);
  for (const std::vector<float>& vector : together.first) EXPECT_FALSE(vector.empty());
  for (const std::vector<int32_t>& ids : together.second) EXPECT_FALSE(ids.empty());
}

}  // namespace
}  // namespace vllm
