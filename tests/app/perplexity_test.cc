// Tests the computation of `vllmcli perplexity`. tests/golden/perplexity_golden.py makes the expected values with
// transformers.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/perplexity/chunk_plan.h"
#include "app/perplexity/chunk_runner.h"
#include "app/perplexity/score_sums.h"
#include "engine/config/errors.h"
#include "engine/executor/make_executor.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/temp_directory.h"
#include "tests/support/test_isa.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;

struct EngineHow {
  int64_t max_num_seqs = 4;
  int64_t max_num_batched_tokens = 2048;
};

std::unique_ptr<LLMEngine> MakeEngine(const std::string& name, const EngineHow& how = {}) {
  VllmConfig config;
  config.model = LoadModelConfig(std::string(VLLMCLI_TEST_DATA) + "/llama/" + name);
  config.model.dtype = kernels::DType::kFloat32;
  config.cache.kv_cache_memory_bytes = int64_t{1} << 20;
  config.scheduler.max_num_seqs = how.max_num_seqs;
  config.scheduler.max_num_batched_tokens = how.max_num_batched_tokens;
  config.parallel.threads_per_rank = 1;
  config.max_logprobs = -1;
  config.Finalize();
  config = testing_support::WithTestIsa(config);
  return std::make_unique<LLMEngine>(config, nullptr, MakeThreadClient(config, MakeExecutor));
}

Json Golden() {
  std::ifstream file(std::string(VLLMCLI_TEST_DATA) + "/perplexity_golden.json");
  return Json::parse(file);
}

ChunkPlan PlanOf(const Json& expected) {
  ChunkPlan plan;
  plan.context = expected["context"];
  plan.stride = expected["stride"];
  if (!expected["bos"].is_null()) plan.bos_token_id = expected["bos"].get<int32_t>();
  return plan;
}

const OnProgress kNoProgress = [](int64_t, const MeanSums&) {};

TEST(PerplexityTest, PerplexityIsThatOfTransformers) {
  const Json golden = Golden();
  const std::vector<int32_t> tokens = golden["tokens"];
  const auto engine = MakeEngine("plain");
  ASSERT_FALSE(golden["cases"].empty());
  for (const Json& expected : golden["cases"]) {
    const ChunkPlan plan = PlanOf(expected);
    EXPECT_EQ(plan.NumChunks(static_cast<int64_t>(tokens.size())), expected["num_chunks"]) << expected;
    const MeanSums nll = MeasurePerplexity(*engine, plan, tokens, kNoProgress);
    EXPECT_EQ(nll.count, expected["num_tokens"]) << expected;
    EXPECT_NEAR(nll.Mean().value, expected["mean_nll"], 1e-4) << expected;
    const double perplexity = expected["perplexity"];
    EXPECT_NEAR(nll.ExpMean().value, perplexity, 1e-4 * perplexity) << expected;
    EXPECT_NEAR(nll.ExpMean().uncertainty, expected["uncertainty"], 1e-4 * perplexity) << expected;
  }
}

TEST(PerplexityTest, TheDifferenceFromAReferenceIsThatOfTransformers) {
  const Json golden = Golden();
  const std::vector<int32_t> tokens = golden["tokens"];
  const auto engine = MakeEngine("plain", {.max_num_seqs = 1});
  const auto reference = MakeEngine("biases", {.max_num_seqs = 1});
  for (const Json& expected : golden["cases"]) {
    const ComparisonSums sums = Compare(*engine, *reference, PlanOf(expected), tokens, kNoProgress);
    EXPECT_NEAR(sums.nll.Mean().value, expected["mean_nll"], 1e-4) << expected;
    EXPECT_NEAR(sums.reference_nll.Mean().value, expected["reference_mean_nll"], 1e-4) << expected;
    EXPECT_NEAR(sums.PerplexityRatio().value, expected["ratio"], 1e-4) << expected;
    EXPECT_NEAR(sums.PerplexityRatio().uncertainty, expected["ratio_uncertainty"], 1e-4) << expected;
    EXPECT_NEAR(sums.kl.Mean().value, expected["kl"], 1e-4) << expected;
    EXPECT_NEAR(sums.kl.Mean().uncertainty, expected["kl_uncertainty"], 1e-4) << expected;
    EXPECT_NEAR(sums.max_kl, expected["max_kl"], 1e-4) << expected;
    EXPECT_NEAR(sums.same_top.Mean().value, expected["same_top"], 1e-6) << expected;
  }
}

TEST(PerplexityTest, TheResultDoesNotDependOnBatching) {
  const std::vector<int32_t> tokens = Golden()["tokens"];
  ChunkPlan plan;
  plan.context = 32;
  plan.stride = 5;
  const auto reference = MakeEngine("plain", {.max_num_seqs = 1});
  const MeanSums expected = MeasurePerplexity(*reference, plan, tokens, kNoProgress);
  for (const EngineHow& how : {EngineHow{3, 7}, EngineHow{16, 100}, EngineHow{64, 2048}}) {
    const auto engine = MakeEngine("plain", how);
    const MeanSums sums = MeasurePerplexity(*engine, plan, tokens, kNoProgress);
    EXPECT_EQ(std::bit_cast<uint64_t>(sums.sum), std::bit_cast<uint64_t>(expected.sum));
    EXPECT_EQ(std::bit_cast<uint64_t>(sums.sum_of_squares), std::bit_cast<uint64_t>(expected.sum_of_squares));
  }
}

TEST(PerplexityTest, AModelDoesNotDifferFromItself) {
  const std::vector<int32_t> tokens = Golden()["tokens"];
  ChunkPlan plan;
  plan.context = 48;
  const auto engine = MakeEngine("plain");
  const auto reference = MakeEngine("plain", {.max_num_seqs = 2, .max_num_batched_tokens = 16});
  const ComparisonSums sums = Compare(*engine, *reference, plan, tokens, kNoProgress);
  EXPECT_EQ(sums.max_kl, 0);
  EXPECT_EQ(sums.PerplexityRatio().value, 1);
  EXPECT_NEAR(sums.PerplexityRatio().uncertainty, 0, 1e-6);
  EXPECT_EQ(sums.same_top.Mean().value, 1);
}

TEST(PerplexityTest, ProgressEndsWithAllChunks) {
  const std::vector<int32_t> tokens = Golden()["tokens"];
  ChunkPlan plan;
  plan.context = 32;
  const auto engine = MakeEngine("plain");
  int64_t last = 0;
  const OnProgress on_progress = [&](int64_t num_done, const MeanSums& nll) {
    EXPECT_GE(num_done, last);
    EXPECT_EQ(nll.count, num_done * 15);
    last = num_done;
  };
  MeasurePerplexity(*engine, plan, tokens, on_progress);
  EXPECT_EQ(last, 6);
}

TEST(PerplexityTest, AChunkThatIsTooLongIsARequestError) {
  const std::vector<int32_t> tokens = Golden()["tokens"];
  ChunkPlan plan;
  plan.context = 65;
  const auto engine = MakeEngine("plain");
  EXPECT_THROW(MeasurePerplexity(*engine, plan, tokens, kNoProgress), RequestError);
}

TEST(ChunkPlanTest, ChunksFollowEachOther) {
  std::vector<int32_t> tokens(11);
  std::iota(tokens.begin(), tokens.end(), 0);
  const ChunkPlan plan{.context = 4, .stride = 0, .bos_token_id = std::nullopt};
  EXPECT_EQ(plan.NumChunks(11), 2);
  EXPECT_EQ(plan.NumChunks(4), 1);
  EXPECT_EQ(plan.NumChunks(3), 0);
  EXPECT_EQ(plan.FirstCounted(), 3);
  EXPECT_EQ(plan.Chunk(tokens, 1), (std::vector<int32_t>{4, 5, 6, 7}));
}

TEST(ChunkPlanTest, StridedChunksOverlap) {
  std::vector<int32_t> tokens(10);
  std::iota(tokens.begin(), tokens.end(), 0);
  const ChunkPlan plan{.context = 4, .stride = 2, .bos_token_id = 77};
  EXPECT_EQ(plan.NumChunks(10), 3);
  EXPECT_EQ(plan.NumChunks(5), 1);
  EXPECT_EQ(plan.NumChunks(4), 0);
  EXPECT_EQ(plan.FirstCounted(), 2);
  EXPECT_EQ(plan.Chunk(tokens, 2), (std::vector<int32_t>{77, 5, 6, 7}));
}

TEST(ChunkPlanTest, TheBosTokenIsTheOneThatTheTokenizerAdds) {
  TempDirectory temp;
  std::ifstream file(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model/tokenizer.json");
  Json json = Json::parse(file);
  std::ofstream(temp.path() + "/tokenizer.json") << json;
  EXPECT_EQ(BosTokenOf(*tokenizer::LoadTokenizer(temp.path())), 1);
  json["post_processor"] = nullptr;
  std::ofstream(temp.path() + "/tokenizer.json") << json;
  EXPECT_EQ(BosTokenOf(*tokenizer::LoadTokenizer(temp.path())), std::nullopt);
}

TEST(ScoreSumsTest, OneValueHasNoUncertainty) {
  MeanSums sums;
  sums.Add(2);
  EXPECT_EQ(sums.Mean().value, 2);
  EXPECT_EQ(sums.Mean().uncertainty, 0);
  EXPECT_DOUBLE_EQ(sums.ExpMean().value, std::exp(2.0));
}

TEST(ScoreSumsTest, TheDivergenceSkipsTokensThatTheReferenceExcludes) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<int32_t> ids = {0, 0, 1, 2};
  const std::vector<float> reference = {std::log(0.75f), std::log(0.75f), std::log(0.25f), -inf};
  const std::vector<float> same = {std::log(0.5f), std::log(0.5f), -inf};
  EXPECT_NEAR(KLDivergence({ids, reference}, same), 0.75 * std::log(1.5) + 0.25 * std::log(0.5), 1e-6);
  const std::vector<float> excludes = {0, -inf, -inf};
  EXPECT_EQ(KLDivergence({ids, reference}, excludes), static_cast<double>(inf));
}

}  // namespace
}  // namespace vllm::app
