// Runs model families whose layers differ from Llama's through the whole engine. Prefix caching, preemption, chunked
// prefill, drafts and other requests in the batch must not change a bit of a result.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/draft_proposers.h"
#include "tests/system/run_requests.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm {
namespace {

using testing_support::DraftKind;
using testing_support::RecordedOutputs;
using testing_support::RunRequests;
using testing_support::TestRequest;
using testing_support::WithDrafts;
using testing_support::WithRecorder;

class FamiliesTest : public testing::TestWithParam<const char*> {
 protected:
  static VllmConfig Config(int64_t max_num_seqs, int64_t max_num_batched_tokens, bool prefix_caching) {
    VllmConfig config;
    config.model = LoadModelConfig(std::string(VLLMCLI_TEST_DATA) + "/models/" + GetParam());
    config.scheduler.max_num_seqs = max_num_seqs;
    config.scheduler.max_num_batched_tokens = max_num_batched_tokens;
    config.cache.enable_prefix_caching = prefix_caching;
    config.parallel.threads_per_rank = 1;
    return config;
  }
  static std::vector<TestRequest> Requests() {
    std::vector<TestRequest> requests;
    uint32_t random = 9;
    const auto token = [&random] {
      random = random * 1664525u + 1013904223u;
      return static_cast<int32_t>(random >> 16) % 61 + 3;
    };
    std::vector<int32_t> shared;
    for (int i = 0; i < 37; ++i) shared.push_back(token());
    for (int i = 0; i < 16; ++i) {
      TestRequest& request = requests.emplace_back();
      request.id = std::to_string(i);
      std::vector<int32_t> prompt;
      if (i % 2 == 0) prompt = shared;
      for (int n = 1 + i * 7 % 29; n > 0; --n) prompt.push_back(token());
      request.prompt = prompt;
      request.params.max_tokens = 5 + i * 5 % 30;
      request.params.temperature = i % 3 == 0 ? 0.0 : 1.0;
      request.params.seed = static_cast<uint64_t>(i);
      request.params.ignore_eos = true;
      request.params.logprobs = 2;
    }
    return requests;
  }
};

INSTANTIATE_TEST_SUITE_P(Families, FamiliesTest,
                         testing::Values("gemma3", "gemma2", "gemma3n_shared_old", "gemma4_k_eq_v", "gemma4_shared",
                                         "gemma4_moe", "mixtral_window", "qwen2_window", "phi3_long", "opt_350m",
                                         "gpt2", "smollm3_window", "olmo2", "qwen2_moe", "qwen3_next", "qwen3_5",
                                         "qwen3_5_taps", "qwen3_5_moe", "lfm2", "gpt_oss_moe", "granite_hybrid",
                                         "deepseek_v2", "deepseek_v3", "glm4_moe_lite_old", "mamba2",
                                         "mamba2_groups_old", "falcon_h1", "falcon_h1_norm_old", "nemotron_h",
                                         "nemotron_h_moe_latent_old", "lfm2_moe", "bailing_moe_v2"),
                         [](const auto& family) { return std::string(family.param); });

TEST_P(FamiliesTest, SchedulesDoNotChangeResults) {
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer =
      tokenizer::LoadTokenizerJson(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model/tokenizer.json");
  const std::vector<TestRequest> requests = Requests();
  VllmConfig alone = Config(1, 2048, false);
  alone.cache.kv_cache_memory_bytes = int64_t{16} << 20;
  alone.Finalize();
  const auto base = RunRequests(alone, tokenizer, requests, {.one_at_a_time = true}).outputs;
  for (const int64_t batched_tokens : {9, 64}) {
    for (const bool caching : {false, true}) {
      VllmConfig config = Config(16, batched_tokens, caching);
      // The longest request needs at most 18 of the 24 blocks: 6 in each of up to three KV-cache groups.
      config.cache.num_blocks_override = 24;
      config.Finalize();
      const auto outputs = RunRequests(config, tokenizer, requests).outputs;
      for (const auto& [id, output] : base) EXPECT_EQ(outputs.at(id), output) << batched_tokens << caching << id;
    }
  }
}

class LatentAttentionTypesTest : public FamiliesTest {};

INSTANTIATE_TEST_SUITE_P(Families, LatentAttentionTypesTest, testing::Values("deepseek_v3", "glm4_moe_lite"),
                         [](const auto& family) { return std::string(family.param); });

// Chunks, preemption and prefix hits read vectors that earlier steps have stored, so a step must use the values that
// it has stored, too.
TEST_P(LatentAttentionTypesTest, SchedulesDoNotChangeResultsWithAnyTypeOfTheKVCache) {
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer =
      tokenizer::LoadTokenizerJson(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model/tokenizer.json");
  const std::vector<TestRequest> requests = Requests();
  for (const kernels::KVDType dtype :
       {kernels::KVDType::kFloat32, kernels::KVDType::kFloat16, kernels::KVDType::kBFloat16, kernels::KVDType::kInt8}) {
    VllmConfig alone = Config(1, 2048, false);
    alone.cache.kv_cache_memory_bytes = int64_t{16} << 20;
    alone.cache.cache_dtype = dtype;
    alone.Finalize();
    const auto base = RunRequests(alone, tokenizer, requests, {.one_at_a_time = true}).outputs;
    for (const int64_t ranks : {1, 2, 4}) {
      VllmConfig config = Config(16, 9, true);
      config.cache.num_blocks_override = 24;
      config.cache.cache_dtype = dtype;
      config.parallel.tensor_parallel_size = ranks;
      config.parallel.threads_per_rank = 2;
      config.Finalize();
      const auto outputs = RunRequests(config, tokenizer, requests).outputs;
      for (const auto& [id, output] : base) {
        EXPECT_EQ(outputs.at(id), output) << kernels::ToString(dtype) << ranks << id;
      }
    }
  }
}

TEST_P(FamiliesTest, DraftsDoNotChangeResults) {
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer =
      tokenizer::LoadTokenizerJson(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model/tokenizer.json");
  const std::vector<TestRequest> requests = Requests();
  VllmConfig alone = Config(1, 2048, false);
  alone.cache.kv_cache_memory_bytes = int64_t{16} << 20;
  alone.speculative = testing_support::VerifyAll(1);
  alone.Finalize();
  const auto recorded = std::make_shared<RecordedOutputs>();
  // The recorder proposes no token.
  const auto base =
      RunRequests(alone, tokenizer, requests, {.one_at_a_time = true, .factory = WithRecorder(MakeExecutor, recorded)})
          .outputs;
  int64_t num_accepted = 0;
  for (const int64_t k : {1, 3, 7}) {
    for (const DraftKind kind : {DraftKind::kRight, DraftKind::kRandom, DraftKind::kMixed}) {
      VllmConfig config = Config(k == 3 ? 4 : 16, k == 7 ? 20 : 64, true);
      config.cache.num_blocks_override = 30;
      config.speculative = testing_support::VerifyAll(k);
      config.Finalize();
      const auto result =
          RunRequests(config, tokenizer, requests,
                      {.factory = WithDrafts(MakeExecutor, kind, recorded, static_cast<uint32_t>(10 * k) + 1)});
      for (const auto& [id, output] : base) EXPECT_EQ(result.outputs.at(id), output) << k << id;
      num_accepted += result.stats.spec_decoding.Total().num_accepted_tokens;
    }
  }
  EXPECT_GT(num_accepted, 100);
}

}  // namespace
}  // namespace vllm
