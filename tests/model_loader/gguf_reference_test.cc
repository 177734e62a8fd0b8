// Tests a trained model in GGUF: it generates the reference tokens, and its log-probabilities are bit-identical to
// those of the same weights in safetensors.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/one_request.h"
#include "tests/support/realdata.h"

namespace vllm {
namespace {

using testing_support::OneRequest;
using testing_support::ReadJson;
using testing_support::RealData;

constexpr const char* kGguf = "models/stories260K/gguf/stories260Ktok512.gguf";

VllmConfig ConfigOf(ModelConfig model, int64_t ranks = 1) {
  VllmConfig config;
  config.model = std::move(model);
  config.parallel.tensor_parallel_size = ranks;
  config.parallel.threads_per_rank = 1;
  config.Finalize();
  return config;
}

TEST(GgufReferenceTest, TrainedWeightsGenerateTheReferenceTokens) {
  VLLMCLI_NEEDS_REALDATA(kGguf);
  for (const int64_t ranks : {1, 2}) {
    OneRequest engine(ConfigOf(LoadGgufConfig(RealData(kGguf)), ranks));
    const nlohmann::json reference = ReadJson(RealData("references/stories260K.greedy.json"));
    // The GGUF file has a context length of 128, and the reference checkpoint has 512. So only tokens that fit into the
    // shorter context are compared.
    for (const nlohmann::json& c : reference["cases"]) {
      const auto prompt = c["prompt_ids"].get<std::vector<int32_t>>();
      auto expected = c["greedy_ids"].get<std::vector<int32_t>>();
      const size_t max_new_tokens = 127 - prompt.size();
      if (expected.size() > max_new_tokens) expected.resize(max_new_tokens);
      EXPECT_EQ(engine.Greedy(prompt, static_cast<int64_t>(expected.size()), 16), expected) << c["prompt"];
    }
  }
}

TEST(GgufReferenceTest, SafetensorsWithTheSameWeightsGiveBitIdenticalLogprobs) {
  VLLMCLI_NEEDS_REALDATA(kGguf);
  VLLMCLI_NEEDS_REALDATA("models/stories260K/hf-f32");
  const ModelConfig from_gguf = LoadGgufConfig(RealData(kGguf));
  const ModelConfig from_directory = LoadModelConfig(RealData("models/stories260K/hf-f32"));
  EXPECT_EQ(from_gguf.rms_norm_eps, from_directory.rms_norm_eps);
  EXPECT_EQ(from_gguf.rope_theta, from_directory.rope_theta);
  EXPECT_EQ(from_gguf.checkpoint_dtype, kernels::DType::kFloat32);
  OneRequest gguf(ConfigOf(from_gguf));
  OneRequest directory(ConfigOf(from_directory));
  const std::vector<int32_t> prompt = {1, 403, 407, 261, 378, 432};
  EXPECT_EQ(gguf.Greedy(prompt, 100, 16, -1, -1), directory.Greedy(prompt, 100, 16, -1, -1));
  EXPECT_EQ(gguf.output_logprobs.logprobs, directory.output_logprobs.logprobs);
  EXPECT_EQ(gguf.prompt_output.logprobs, directory.prompt_output.logprobs);
}

}  // namespace
}  // namespace vllm
