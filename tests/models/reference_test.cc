// Runs trained models on the executor alone and compares greedy tokens and logprobs with float64 reference runs, with
// prompts in one or many chunks, on one and two ranks, and on every available instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "kernels/isa.h"
#include "tests/support/one_request.h"
#include "tests/support/realdata.h"

namespace vllm {
namespace {

using testing_support::OneRequest;
using testing_support::ReadJson;
using testing_support::RealData;

struct RunSpec {
  std::string directory;
  int64_t tensor_parallel_size = 1;
  int64_t threads_per_rank = 1;
  kernels::DType dtype = kernels::DType::kFloat32;
  std::optional<kernels::Isa> isa = std::nullopt;
};

VllmConfig MakeConfig(const RunSpec& spec) {
  VllmConfig config;
  config.model = LoadModelConfig(RealData(spec.directory));
  config.model.dtype = spec.dtype;
  config.parallel.tensor_parallel_size = spec.tensor_parallel_size;
  config.parallel.threads_per_rank = spec.threads_per_rank;
  config.isa = spec.isa;
  config.Finalize();
  return config;
}

struct ReferenceModel {
  std::string name, directory, ids_key;
};

void PrintTo(const ReferenceModel& model, std::ostream* out) { *out << model.name; }

const ReferenceModel kModels[] = {
    {"stories260K", "models/stories260K/hf-f32", "greedy_ids"},
    {"babyllama-tok105", "models/babyllama-tok105/hf-f32", "greedy_ids"},
    {"TinyStories-656K", "models/TinyStories-656K", "greedy_ids_ignore_eos"},
};

class ReferenceTest : public testing::TestWithParam<ReferenceModel> {
 protected:
  void SetUp() override { VLLMCLI_NEEDS_REALDATA("references/" + GetParam().name + ".greedy.json"); }
  nlohmann::json Reference(const std::string& kind) const {
    return ReadJson(RealData("references/" + GetParam().name + "." + kind + ".json"));
  }
};

INSTANTIATE_TEST_SUITE_P(Models, ReferenceTest, testing::ValuesIn(kModels), [](const auto& model) {
  std::string name = model.param.name;
  std::erase(name, '-');
  return name;
});

void ExpectReferenceIds(const std::vector<int32_t>& ids, const nlohmann::json& c, const std::string& key) {
  const auto expected = c[key].get<std::vector<int32_t>>();
  ASSERT_EQ(ids.size(), expected.size());
  // If the two best logits are closer than float32 can resolve, either token is right and the tokens after it cannot be
  // compared.
  const double gap = c.contains("min_top2_gap") ? c["min_top2_gap"].get<double>() : c["min_top2_gap_all"].get<double>();
  const size_t compare = gap < 1e-5 && c.contains("argmin_gap") ? c["argmin_gap"].get<size_t>() : expected.size();
  for (size_t i = 0; i < compare; ++i) ASSERT_EQ(ids[i], expected[i]) << "token " << i << " of prompt " << c["prompt"];
}

TEST_P(ReferenceTest, GreedyTokensEqualTheReference) {
  OneRequest engine(MakeConfig({GetParam().directory}));
  const nlohmann::json reference = Reference("greedy");
  for (const nlohmann::json& c : reference["cases"]) {
    const auto prompt = c["prompt_ids"].get<std::vector<int32_t>>();
    ExpectReferenceIds(engine.Greedy(prompt, c["max_tokens"], 2048), c, GetParam().ids_key);
  }
}

TEST_P(ReferenceTest, GreedyTokensEqualTheReferenceOnTwoRanks) {
  for (const int64_t threads : {1, 2}) {
    OneRequest engine(MakeConfig({GetParam().directory, 2, threads}));
    const nlohmann::json reference = Reference("greedy");
    for (const nlohmann::json& c : reference["cases"]) {
      const auto prompt = c["prompt_ids"].get<std::vector<int32_t>>();
      ExpectReferenceIds(engine.Greedy(prompt, c["max_tokens"], 7), c, GetParam().ids_key);
      if (threads == 2) break;
    }
  }
}

TEST_P(ReferenceTest, GreedyTokensEqualTheReferenceOnEveryInstructionSet) {
  for (const kernels::Isa isa : kernels::AvailableIsas()) {
    OneRequest engine(MakeConfig({GetParam().directory, 1, 1, kernels::DType::kFloat32, isa}));
    const nlohmann::json c = Reference("greedy")["cases"][1];
    ExpectReferenceIds(engine.Greedy(c["prompt_ids"].get<std::vector<int32_t>>(), c["max_tokens"], 5), c,
                       GetParam().ids_key);
  }
}

TEST_P(ReferenceTest, ChunksAndThreadsDoNotChangeABitOfTheLogprobs) {
  const auto prompt = Reference("logprobs")["prompt_logprobs"]["ids"].get<std::vector<int32_t>>();
  Logprobs first_output, first_prompt;
  for (const int64_t threads : {1, 2, 3}) {
    OneRequest engine(MakeConfig({GetParam().directory, 1, threads, kernels::DType::kBFloat16}));
    for (const int64_t chunk : {2048, 16, 5, 1}) {
      engine.Greedy(prompt, 20, chunk, 3, 3);
      if (first_output.empty()) {
        first_output = engine.output_logprobs;
        first_prompt = engine.prompt_output;
      }
      EXPECT_EQ(engine.output_logprobs.token_ids, first_output.token_ids);
      EXPECT_EQ(engine.output_logprobs.logprobs, first_output.logprobs);
      EXPECT_EQ(engine.prompt_output.logprobs, first_prompt.logprobs);
    }
  }
}

TEST_P(ReferenceTest, PromptLogprobsAndTokenRanksAgreeWithTheReference) {
  const nlohmann::json reference = Reference("logprobs")["prompt_logprobs"];
  const auto ids = reference["ids"].get<std::vector<int32_t>>();
  OneRequest engine(MakeConfig({GetParam().directory}));
  engine.Greedy(ids, 1, 2048, std::nullopt, 5);
  const Logprobs& got = engine.prompt_output;
  const nlohmann::json& tokens = reference["tokens"];
  ASSERT_EQ(got.num_positions(), tokens.size());
  ASSERT_EQ(got.width, 6u);
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(got.token_ids[i * 6], tokens[i]["id"].get<int32_t>());
    EXPECT_EQ(got.ranks[i], tokens[i]["rank"].get<int32_t>());
    EXPECT_NEAR(got.logprobs[i * 6], tokens[i]["logprob"].get<double>(), 1e-4);
    for (size_t k = 0; k < 5; ++k) {
      EXPECT_EQ(got.token_ids[i * 6 + 1 + k], tokens[i]["top5"][k][0].get<int32_t>());
      EXPECT_NEAR(got.logprobs[i * 6 + 1 + k], tokens[i]["top5"][k][1].get<double>(), 1e-4);
    }
  }
}

TEST_P(ReferenceTest, LogprobsOfTheWholeVocabularyAgreeWithTheReference) {
  OneRequest engine(MakeConfig({GetParam().directory}));
  const nlohmann::json reference = Reference("logits");
  for (const nlohmann::json& c : reference["cases"]) {
    const auto ids = c["ids"].get<std::vector<int32_t>>();
    const auto logits = (c.contains("logits") ? c["logits"].back() : c["logits_last"]).get<std::vector<double>>();
    double total = 0.0;
    for (const double x : logits) total += std::exp(x);
    engine.Greedy(ids, 1, 2048, -1);
    const Logprobs& got = engine.output_logprobs;
    ASSERT_EQ(got.width, logits.size() + 1);
    for (size_t i = 0; i < got.width; ++i) {
      EXPECT_NEAR(got.logprobs[i], logits[static_cast<size_t>(got.token_ids[i])] - std::log(total), 1e-4);
    }
  }
}

TEST(CheckpointFormsTest, ShardedCheckpointGivesTheSameTokensAsASingleFile) {
  VLLMCLI_NEEDS_REALDATA("models/stories260K/hf-bf16-sharded");
  OneRequest whole(MakeConfig({"models/stories260K/hf-bf16", 1, 1, kernels::DType::kBFloat16}));
  OneRequest sharded(MakeConfig({"models/stories260K/hf-bf16-sharded", 1, 1, kernels::DType::kBFloat16}));
  EXPECT_EQ(whole.Greedy({1, 403, 407}, 100, 2048), sharded.Greedy({1, 403, 407}, 100, 2048));
}

}  // namespace
}  // namespace vllm
