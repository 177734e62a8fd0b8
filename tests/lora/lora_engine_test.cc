// Tests requests with LoRA adapters in the whole engine: a request gives the same tokens and logprobs under every
// schedule and with any adapters in the other requests, and prefix caching never mixes adapters.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/lora/load_adapter.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/system/mixed_requests.h"
#include "tests/system/run_requests.h"

namespace vllm {
namespace {

using testing_support::EngineSetup;
using testing_support::RunHow;
using testing_support::RunRequests;
using testing_support::TestRequest;

constexpr const char* kAdapters[] = {"all_linear", "attention", "rslora", "patterns", "regex", "lora_bias"};

VllmConfig Config(const EngineSetup& setup, int64_t max_loras) {
  const std::string data = VLLMCLI_TEST_DATA;
  VllmConfig config = testing_support::MakeConfig(data + "/models/llama", setup);
  config.scheduler.max_loras = max_loras;
  for (const char* name : kAdapters) {
    config.lora.adapters.push_back(LoadLoRAAdapter(name, data + "/lora/" + name, config.model, 64));
  }
  return config;
}

// Requests whose prompts share prefixes, with all adapters and none.
std::vector<TestRequest> Requests(int count) {
  std::vector<TestRequest> requests;
  std::vector<int32_t> shared;
  for (int i = 0; i < 40; ++i) shared.push_back(3 + i * 7 % 61);
  for (int i = 0; i < count; ++i) {
    TestRequest request;
    request.id = "request " + std::to_string(i);
    std::vector<int32_t> ids(shared.begin(), shared.begin() + (i % 3 == 0 ? 40 : 17));
    for (int k = 0; k < i % 5; ++k) ids.push_back(3 + (i * 13 + k) % 61);
    request.prompt = ids;
    request.params.max_tokens = 6 + i % 20;
    request.params.temperature = i % 2 == 0 ? 0.0 : 0.8;
    request.params.seed = static_cast<uint64_t>(i);
    request.params.ignore_eos = true;
    request.params.logprobs = 2;
    const size_t choice = static_cast<size_t>(i) % (std::size(kAdapters) + 1);
    if (choice < std::size(kAdapters)) request.options.lora = kAdapters[choice];
    requests.push_back(request);
  }
  return requests;
}

TEST(LoRAEngineTest, RequestsGiveTheSameResultUnderEverySchedule) {
  const std::vector<TestRequest> requests = Requests(40);
  RunHow alone;
  alone.one_at_a_time = true;
  EngineSetup plain;
  plain.prefix_caching = false;
  const auto expected = RunRequests(Config(plain, 1), nullptr, requests, alone).outputs;
  struct Schedule {
    EngineSetup setup;
    int64_t max_loras = 1;
  };
  const Schedule schedules[] = {
      {{}, 1},
      {{}, 3},
      {{}, 8},
      {{.max_num_seqs = 5, .max_num_batched_tokens = 16}, 2},
      {{.max_num_seqs = 16, .num_blocks = 18}, 4},
      {{.num_blocks = 14, .threads = 2, .policy = SchedulingPolicy::kPriority}, 2},
      {{.engines = 2}, 2},
  };
  for (const Schedule& schedule : schedules) {
    EXPECT_EQ(RunRequests(Config(schedule.setup, schedule.max_loras), nullptr, requests).outputs, expected)
        << schedule.max_loras << " adapters";
  }
}

TEST(LoRAEngineTest, TwoRanksGiveTheResultOfOne) {
  const std::vector<TestRequest> requests = Requests(20);
  RunHow alone;
  alone.one_at_a_time = true;
  const auto expected = RunRequests(Config({}, 1), nullptr, requests, alone).outputs;
  EXPECT_EQ(RunRequests(Config({.ranks = 2}, 1), nullptr, requests, alone).outputs, expected);
  EXPECT_EQ(RunRequests(Config({.num_blocks = 18, .ranks = 2}, 4), nullptr, requests).outputs, expected);
}

TEST(LoRAEngineTest, SpeculationDoesNotChangeResults) {
  const std::vector<TestRequest> requests = Requests(20);
  const auto expected = RunRequests(Config({}, 4), nullptr, requests).outputs;
  EngineSetup setup;
  setup.speculative.method = SpeculativeMethod::kNgram;
  EXPECT_EQ(RunRequests(Config(setup, 4), nullptr, requests).outputs, expected);
}

TEST(LoRAEngineTest, EqualPromptsWithDifferentAdaptersShareNoBlocks) {
  std::vector<TestRequest> requests = Requests(7);
  std::vector<int32_t> ids;
  for (int i = 0; i < 48; ++i) ids.push_back(3 + i);
  for (TestRequest& request : requests) {
    request.prompt = ids;
    request.params.max_tokens = 1;
  }
  RunHow alone;
  alone.one_at_a_time = true;
  EXPECT_EQ(RunRequests(Config({}, 1), nullptr, requests, alone).stats.prefix_cache.hits, 0);
}

TEST(LoRAEngineTest, EqualPromptsWithTheSameAdapterShareBlocks) {
  std::vector<TestRequest> requests = Requests(2);
  std::vector<int32_t> ids;
  for (int i = 0; i < 48; ++i) ids.push_back(3 + i);
  for (TestRequest& request : requests) {
    request.prompt = ids;
    request.options.lora = "attention";
  }
  RunHow alone;
  alone.one_at_a_time = true;
  EXPECT_EQ(RunRequests(Config({}, 1), nullptr, requests, alone).stats.prefix_cache.hits, 32);
}

TEST(LoRAEngineTest, RequestsThatNameNoAdapterUseTheDefault) {
  std::vector<TestRequest> requests = Requests(7);
  for (TestRequest& request : requests) request.options.lora = "patterns";
  const auto expected = RunRequests(Config({}, 1), nullptr, requests).outputs;
  for (TestRequest& request : requests) request.options.lora.reset();
  VllmConfig config = Config({}, 1);
  config.lora.default_lora = "patterns";
  EXPECT_EQ(RunRequests(config, nullptr, requests).outputs, expected);
}

TEST(LoRAEngineTest, AnUnknownAdapterIsRejected) {
  std::vector<TestRequest> requests = Requests(1);
  requests[0].options.lora = "missing";
  const std::string result = RunRequests(Config({}, 1), nullptr, requests).outputs.begin()->second;
  EXPECT_NE(result.find("lora: no adapter has this name (missing; loaded: all_linear, "), std::string::npos) << result;
}

}  // namespace
}  // namespace vllm
