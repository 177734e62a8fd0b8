// Compares beam search with that of Hugging Face transformers. tests/golden/beam_search_golden.py makes the expected
// sequences.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/test_isa.h"

namespace vllm {
namespace {

TEST(BeamSearchGoldenTest, FindsTheSequencesOfTransformers) {
  std::ifstream file(std::string(VLLMCLI_TEST_DATA) + "/beam_search_golden.json");
  const auto cases = nlohmann::json::parse(file);
  ASSERT_FALSE(cases.empty());
  VllmConfig config;
  config.model = LoadModelConfig(std::string(VLLMCLI_TEST_DATA) + "/llama/plain");
  config.model.dtype = kernels::DType::kFloat32;
  config.cache.kv_cache_memory_bytes = int64_t{1} << 20;
  config.parallel.threads_per_rank = 1;
  config.Finalize();
  config = testing_support::WithTestIsa(config);
  LLMEngine engine(config, nullptr, MakeInprocClient(config, MakeExecutor));
  for (const auto& expected : cases) {
    SamplingParams params;
    params.use_beam_search = true;
    params.beam_width = expected.at("beam_width").get<int64_t>();
    params.length_penalty = expected.at("length_penalty").get<double>();
    params.max_tokens = 12;
    params.ignore_eos = true;
    engine.AddRequest("request", expected.at("prompt_token_ids").get<std::vector<int32_t>>(), params);
    std::vector<CompletionOutput> outputs;
    while (engine.HasUnfinishedRequests()) {
      for (const RequestOutput& output : engine.Step()) outputs = output.outputs;
    }
    ASSERT_EQ(outputs.size(), expected.at("token_ids").size());
    for (size_t rank = 0; rank < outputs.size(); ++rank) {
      EXPECT_EQ(outputs[rank].token_ids, expected.at("token_ids")[rank].get<std::vector<int32_t>>());
      ASSERT_TRUE(outputs[rank].score);
      EXPECT_NEAR(*outputs[rank].score, expected.at("scores")[rank].get<double>(), 1e-4);
    }
  }
}

}  // namespace
}  // namespace vllm
