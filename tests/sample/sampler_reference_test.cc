// Compares the sampler with distributions and logprobs computed by other implementations.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/sample/sampler.h"

namespace vllm {
namespace {

using nlohmann::json;

json ReadJson(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

SamplingParams ParamsOf(const json& object) {
  SamplingParams params;
  auto set = [&](const char* name, auto& field) {
    if (object.contains(name)) field = object[name].get<std::decay_t<decltype(field)>>();
  };
  set("temperature", params.temperature);
  set("top_k", params.top_k);
  set("top_p", params.top_p);
  set("min_p", params.min_p);
  set("repetition_penalty", params.repetition_penalty);
  set("frequency_penalty", params.frequency_penalty);
  set("presence_penalty", params.presence_penalty);
  set("min_tokens", params.min_tokens);
  set("stop_token_ids", params.stop_token_ids);
  set("bad_words_token_ids", params.bad_words_token_ids);
  if (object.contains("eos_token_id")) params.eos_token_id = object["eos_token_id"].get<int32_t>();
  if (object.contains("allowed_token_ids")) {
    params.allowed_token_ids = object["allowed_token_ids"].get<std::vector<int32_t>>();
  }
  if (object.contains("logit_bias")) {
    const json& bias = object["logit_bias"];
    if (bias.is_object()) {
      for (const auto& [id, value] : bias.items()) params.logit_bias.emplace_back(std::stoi(id), value.get<float>());
    } else {
      for (const json& pair : bias) params.logit_bias.emplace_back(pair[0].get<int32_t>(), pair[1].get<float>());
    }
  }
  return params;
}

TEST(SamplerReferenceTest, DistributionsMatchPyTorchInVllmsOrderOfOperations) {
  json golden = ReadJson(std::string(VLLMCLI_TEST_DATA) + "/sampler_golden.json");
  ASSERT_EQ(golden["cases"].size(), 120u);
  for (size_t c = 0; c < golden["cases"].size(); ++c) {
    const json& test = golden["cases"][c];
    std::vector<float> logits = test["logits"].get<std::vector<float>>();
    SamplingParams params = ParamsOf(test["params"]);
    std::vector<int32_t> prompt = test["prompt_token_ids"], output = test["output_token_ids"];
    Sampler sampler(static_cast<int64_t>(logits.size()));

    Logprobs logprobs;
    sampler.AppendLogprobs(logits, test["logprobs"]["token_id"], 5, logprobs);
    EXPECT_EQ(logprobs.ranks[0], test["logprobs"]["rank"].get<int32_t>()) << c;
    EXPECT_NEAR(logprobs.logprobs[0], test["logprobs"]["logprob"].get<float>(), 2e-6) << c;
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(logprobs.token_ids[1 + i], test["logprobs"]["top_ids"][i].get<int32_t>()) << c;
      EXPECT_NEAR(logprobs.logprobs[1 + i], test["logprobs"]["top_logprobs"][i].get<float>(), 2e-6) << c;
    }

    std::vector<double> probs = sampler.Distribution({logits, &params, prompt, output});
    for (size_t i = 0; i < probs.size(); ++i) {
      EXPECT_NEAR(probs[i], test["probs"][i].get<double>(), 1e-6) << "case " << c << " token " << i;
    }
  }
}

class SamplerReferenceDataTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(Path("sampler_vectors.json")))
      GTEST_SKIP() << "reference data not found: " << Path("sampler_vectors.json");
  }
  static std::string Path(const std::string& name) { return std::string(VLLMCLI_REALDATA) + "/references/" + name; }
};

TEST_F(SamplerReferenceDataTest, DistributionsMatchOnLogitsOfTrainedModels) {
  json vectors = ReadJson(Path("sampler_vectors.json"));
  for (const json& test : vectors["cases"]) {
    std::string from = test["logits_from"];  // "references/M.logits.json case N, last position"
    json cases = ReadJson(Path(from.substr(11, from.find(' ') - 11)))["cases"];
    size_t index = std::stoul(from.substr(from.find(" case ") + 6));
    std::vector<float> logits = cases[index]["logits"].back().get<std::vector<float>>();
    SamplingParams params = ParamsOf(test["params"]);
    std::vector<int32_t> prompt = test["prompt_token_ids"], output = test["output_token_ids"];
    Sampler sampler(static_cast<int64_t>(logits.size()));
    std::vector<double> probs = sampler.Distribution({logits, &params, prompt, output});
    for (const json& entry : test["probs"]) {
      EXPECT_NEAR(probs[entry[0].get<size_t>()], entry[1].get<double>(), 1e-5) << test["params"];
    }
    // The reference computed in float64, where a token with a bias of -100 has a probability above 0. In float32, as in
    // vLLM, that probability is 0.
    int64_t num_underflowed = test["params"].contains("logit_bias") ? 1 : 0;
    int64_t support = std::count_if(probs.begin(), probs.end(), [](double p) { return p > 0.0; });
    EXPECT_EQ(support, test["support_size"].get<int64_t>() - num_underflowed) << test["params"];
  }
}

TEST_F(SamplerReferenceDataTest, LogprobsMatchOnLogitsOfTrainedModels) {
  for (std::string model : {"stories260K", "babyllama-tok105"}) {
    json logits = ReadJson(Path(model + ".logits.json"))["cases"][1];
    json expected = ReadJson(Path(model + ".logprobs.json"));
    ASSERT_EQ(logits["ids"], expected["output_logprobs"]["ids"]);
    std::vector<std::vector<float>> rows = logits["logits"];
    Sampler sampler(static_cast<int64_t>(rows[0].size()));
    auto check = [&](const std::vector<float>& row, int32_t id, const json& top) {
      Logprobs got;
      sampler.AppendLogprobs(row, id, static_cast<int64_t>(top.size()), got);
      for (size_t i = 0; i < top.size(); ++i) {
        EXPECT_EQ(got.token_ids[1 + i], top[i][0].get<int32_t>());
        EXPECT_NEAR(got.logprobs[1 + i], top[i][1].get<float>(), 1e-5);
      }
      return got;
    };
    for (size_t i = 0; i + 1 < rows.size(); ++i) {
      const json& token = expected["prompt_logprobs"]["tokens"][i];
      Logprobs got = check(rows[i], token["id"], token["top5"]);
      EXPECT_EQ(got.ranks[0], token["rank"].get<int32_t>());
      EXPECT_NEAR(got.logprobs[0], token["logprob"].get<float>(), 1e-5);
    }
    const json& step = expected["output_logprobs"]["steps"][0];
    check(rows.back(), step["id"], step["top10"]);
  }
}

}  // namespace
}  // namespace vllm
