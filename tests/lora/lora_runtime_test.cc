// Tests adapters that are loaded and unloaded while the engine runs: results are those of an engine that has all of
// them in memory from the start.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/data_parallel/data_parallel_client.h"
#include "engine/frontend/llm_engine.h"
#include "engine/lora/load_adapter.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/temp_directory.h"
#include "tests/system/mixed_requests.h"
#include "tests/system/run_requests.h"

namespace vllm {
namespace {

using testing_support::EngineSetup;
using testing_support::RunRequests;
using testing_support::TestRequest;

constexpr const char* kAdapters[] = {"all_linear", "attention", "rslora", "patterns", "regex", "dora"};

std::string Data() { return VLLMCLI_TEST_DATA; }

std::shared_ptr<const LoRAAdapter> Load(const std::string& name, const std::string& directory,
                                        const ModelConfig& model) {
  return LoadLoRAAdapter(name, Data() + "/lora/" + directory, model, 64);
}

VllmConfig Config(const EngineSetup& setup, int64_t max_loras, int64_t max_cpu_loras, size_t num_adapters) {
  VllmConfig config = testing_support::MakeConfig(Data() + "/models/llama", setup);
  config.scheduler.max_loras = max_loras;
  config.lora.max_cpu_loras = max_cpu_loras;
  for (size_t i = 0; i < num_adapters; ++i)
    config.lora.adapters.push_back(Load(kAdapters[i], kAdapters[i], config.model));
  config.Finalize();
  return config;
}

TestRequest MakeRequest(int i, const std::string& adapter) {
  TestRequest request;
  request.id = "request " + std::to_string(i);
  std::vector<int32_t> ids;
  for (int k = 0; k < 20 + i % 7; ++k) ids.push_back(3 + (i % 3 * 5 + k * 7) % 61);
  request.prompt = ids;
  request.params.max_tokens = 4 + i % 9;
  request.params.temperature = i % 2 == 0 ? 0.0 : 0.8;
  request.params.seed = static_cast<uint64_t>(i);
  request.params.ignore_eos = true;
  request.params.logprobs = 2;
  if (!adapter.empty()) request.options.lora = adapter;
  return request;
}

std::vector<TestRequest> Requests(int count) {
  std::vector<TestRequest> requests;
  for (int i = 0; i < count; ++i) {
    const size_t choice = static_cast<size_t>(i * 5) % (std::size(kAdapters) + 1);
    requests.push_back(MakeRequest(i, choice < std::size(kAdapters) ? kAdapters[choice] : ""));
  }
  return requests;
}

TEST(LoRARuntimeTest, FewerAdaptersInMemoryDoNotChangeResults) {
  const std::vector<TestRequest> requests = Requests(42);
  for (const EngineSetup& setup : {EngineSetup{}, EngineSetup{.ranks = 2}, EngineSetup{.engines = 2}}) {
    const auto expected = RunRequests(Config(setup, 6, 0, 6), nullptr, requests).outputs;
    for (const int64_t max_loras : {1, 2, 4}) {
      EXPECT_EQ(RunRequests(Config(setup, max_loras, max_loras, 6), nullptr, requests).outputs, expected)
          << max_loras << " adapters in memory";
    }
    EXPECT_EQ(RunRequests(Config(setup, 2, 5, 6), nullptr, requests).outputs, expected);
  }
}

// An engine to which adapters are added.
class Engine {
 public:
  explicit Engine(const VllmConfig& config, bool in_process = false)
      : engine_(config, nullptr,
                in_process                               ? MakeInprocClient(config, MakeExecutor)
                : config.parallel.data_parallel_size > 1 ? MakeDataParallelClient(config, MakeExecutor)
                                                         : MakeThreadClient(config, MakeExecutor)) {}

  LLMEngine* operator->() { return &engine_; }
  void Add(const TestRequest& request) {
    engine_.AddRequest(request.id, request.prompt, request.params, request.options);
  }
  // Returns the tokens of all requests, by their ids.
  std::map<std::string, std::vector<int32_t>> Run() {
    std::map<std::string, std::vector<int32_t>> tokens;
    while (engine_.HasUnfinishedRequests()) {
      for (const RequestOutput& output : engine_.Step()) {
        EXPECT_NE(output.outputs[0].finish_reason, FinishReason::kError);
        if (output.finished) tokens[output.request_id] = output.outputs[0].token_ids;
      }
    }
    return tokens;
  }
  std::vector<int32_t> Run(const TestRequest& request) {
    Add(request);
    return Run()[request.id];
  }

 private:
  LLMEngine engine_;
};

TEST(LoRARuntimeTest, AnAdapterThatIsAddedGivesTheResultsOfOneFromTheStart) {
  for (const EngineSetup& setup : {EngineSetup{}, EngineSetup{.ranks = 2}, EngineSetup{.engines = 2}}) {
    for (const bool in_process : {false, true}) {
      if (in_process && setup.engines > 1) continue;
      const VllmConfig all = Config(setup, 1, 0, 6);
      Engine expected(all, in_process);
      Engine engine(Config(setup, 1, 0, 0), in_process);
      EXPECT_EQ(engine.Run(MakeRequest(1, "")), expected.Run(MakeRequest(1, "")));
      int i = 2;
      for (const char* name : kAdapters) {
        engine->AddLoRA(Load(name, name, all.model));
        const TestRequest request = MakeRequest(i++, name);
        EXPECT_EQ(engine.Run(request), expected.Run(request)) << name;
      }
      // The first ones are not in memory any more.
      for (const char* name : kAdapters) {
        const TestRequest request = MakeRequest(i++, name);
        EXPECT_EQ(engine.Run(request), expected.Run(request)) << name;
      }
    }
  }
}

TEST(LoRARuntimeTest, AnAdapterIsAddedWhileRequestsRun) {
  const VllmConfig all = Config({}, 4, 0, 6);
  std::vector<TestRequest> requests = Requests(14);
  for (TestRequest& request : requests) request.params.max_tokens = 40;
  Engine expected(all);
  for (const TestRequest& request : requests) expected.Add(request);
  Engine engine(Config({}, 4, 0, 0));
  std::map<std::string, std::vector<int32_t>> tokens;
  for (const TestRequest& request : requests) {
    if (request.options.lora) engine->AddLoRA(Load(*request.options.lora, *request.options.lora, all.model));
    engine.Add(request);
    for (const RequestOutput& output : engine->Step()) {
      if (output.finished) tokens[output.request_id] = output.outputs[0].token_ids;
    }
  }
  tokens.merge(engine.Run());
  EXPECT_EQ(tokens, expected.Run());
}

TEST(LoRARuntimeTest, ANameThatIsPointedAtAnotherAdapterUsesNothingOfTheOldOne) {
  const VllmConfig all = Config({}, 1, 0, 6);
  Engine expected(all);
  Engine engine(Config({}, 1, 0, 0));
  TestRequest request = MakeRequest(6, "attention");
  std::vector<int32_t> ids;
  for (int i = 0; i < 48; ++i) ids.push_back(3 + i);
  request.prompt = ids;
  const std::vector<int32_t> of_attention = expected.Run(request);
  request.options.lora = "all_linear";
  const std::vector<int32_t> of_all_linear = expected.Run(request);
  EXPECT_NE(of_attention, of_all_linear);

  request.options.lora = "mine";
  engine->AddLoRA(Load("mine", "attention", all.model));
  EXPECT_EQ(engine.Run(request), of_attention);
  engine->AddLoRA(Load("mine", "all_linear", all.model));
  EXPECT_EQ(engine.Run(request), of_all_linear);
  EXPECT_EQ(engine->config().lora.adapters.size(), 2u);
  EXPECT_EQ(NamedAdapters(engine->config().lora.adapters).size(), 1u);
  // The same contents are not loaded again, and find their blocks.
  const int64_t hits = engine->stats().prefix_cache.hits;
  engine->AddLoRA(Load("mine", "all_linear", all.model));
  EXPECT_EQ(engine.Run(request), of_all_linear);
  EXPECT_EQ(engine->config().lora.adapters.size(), 2u);
  EXPECT_GT(engine->stats().prefix_cache.hits, hits);
}

TEST(LoRARuntimeTest, AnAdapterThatDoesNotFitIsRejectedAndTheEngineContinues) {
  for (const int64_t ranks : {1, 2}) {
    const VllmConfig all = Config({.ranks = ranks}, 1, 0, 2);
    Engine engine(Config({.ranks = ranks}, 1, 0, 1));
    const std::vector<int32_t> before = engine.Run(MakeRequest(1, "all_linear"));
    const std::string error = MessageOf<ModelError>([&] { engine->AddLoRA(Load("other", "fused", all.model)); });
    EXPECT_NE(error.find("the model has no layer for tensor"), std::string::npos) << error;
    EXPECT_EQ(engine.Run(MakeRequest(1, "all_linear")), before);
    EXPECT_THROW(engine.Add(MakeRequest(2, "other")), RequestError);
    engine->AddLoRA(Load("attention", "attention", all.model));
    Engine expected(all);
    EXPECT_EQ(engine.Run(MakeRequest(2, "attention")), expected.Run(MakeRequest(2, "attention")));
  }
}

TEST(LoRARuntimeTest, FiftyAdaptersWithFourInMemoryAllMakeProgress) {
  VllmConfig config = Config({}, 4, 4, 0);
  for (int i = 0; i < 50; ++i) {
    config.lora.adapters.push_back(
        Load("adapter " + std::to_string(i), kAdapters[static_cast<size_t>(i) % std::size(kAdapters)], config.model));
  }
  Engine engine(config);
  Engine expected(Config({}, 1, 0, 6));
  std::map<std::string, std::vector<int32_t>> tokens;
  for (int i = 0; i < 150; ++i) {
    const int adapter = i * 7 % 50;
    engine.Add(MakeRequest(i, "adapter " + std::to_string(adapter)));
    expected.Add(MakeRequest(i, kAdapters[static_cast<size_t>(adapter) % std::size(kAdapters)]));
  }
  EXPECT_EQ(engine.Run(), expected.Run());
}

}  // namespace
}  // namespace vllm
