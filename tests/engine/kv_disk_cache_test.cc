// Engines that keep KV blocks on disk, with a fake executor that throws if the KV of a computed token is wrong, and
// with the bundled model.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/core/engine_core.h"
#include "engine/core/thread_client.h"
#include "engine/executor/make_executor.h"
#include "engine/kv_offload/disk_kv_connector.h"
#include "engine/model_loader/hf/hf_config.h"
#include "engine/sched/scheduler.h"
#include "engine/trace/trace_recorder.h"
#include "tests/engine/fake_executor.h"
#include "tests/support/draft_proposers.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeGenerate;
using testing::FakeModel;
using testing::FakeRequest;

struct Answer {
  std::vector<int32_t> token_ids;
  FinishReason finish_reason = FinishReason::kNone;
  int64_t num_cached_tokens = 0;
};
using Answers = std::map<RequestId, Answer>;

void Collect(const EngineCoreOutputs& outputs, Answers& answers) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    Answer& answer = answers[outputs[i].request_id];
    EXPECT_EQ(answer.finish_reason, FinishReason::kNone) << "output after the request finished";
    answer.token_ids.insert(answer.token_ids.end(), outputs[i].new_token_ids.begin(), outputs[i].new_token_ids.end());
    answer.finish_reason = outputs[i].finish_reason;
    answer.num_cached_tokens = outputs[i].num_cached_tokens;
  }
}

Answers RunAll(EngineCore& engine_core) {
  Answers answers;
  EngineCoreOutputs outputs;
  while (engine_core.HasRequests()) {
    engine_core.Step(outputs);
    Collect(outputs, answers);
  }
  EXPECT_EQ(engine_core.scheduler().CheckIntegrity(), "");
  return answers;
}

Answer RunOne(EngineCore& engine_core, const EngineCoreRequestPtr& request) {
  engine_core.AddRequest(request);
  return RunAll(engine_core).at(request->request_id);
}

std::vector<int32_t> RandomTokens(std::mt19937& random, size_t size, uint32_t vocab_size = 259) {
  std::vector<int32_t> tokens(size);
  for (int32_t& id : tokens) id = static_cast<int32_t>(random() % vocab_size);
  return tokens;
}

class KVDiskCacheTest : public ::testing::Test {
 protected:
  VllmConfig Config() const {
    VllmConfig config = FakeConfig();
    SetCache(config);
    return config;
  }

  void SetCache(VllmConfig& config) const {
    config.kv_disk_cache = {.directory = directory_,
                            .max_bytes = int64_t{64} << 20,
                            .model_identity = "model",
                            .label = "label",
                            .loads_only_if_faster = false};
  }

  // Overwrites some bytes of every segment, or cuts the segment. The store may delete segments meanwhile.
  void Damage(std::mt19937& random) const {
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      std::error_code error;
      const auto size = std::filesystem::file_size(entry.path(), error);
      if (error || entry.path().extension() != ".kvseg" || size == 0) continue;
      if (random() % 8 == 0) {
        std::filesystem::resize_file(entry.path(), random() % size, error);
        continue;
      }
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      for (int i = 0; i < 4; ++i) {
        file.seekp(static_cast<std::streamoff>(random() % size));
        file.put(static_cast<char>(random()));
      }
    }
  }

  TempDirectory temp_;
  std::string directory_ = temp_.path() + "/kv";
};

TEST_F(KVDiskCacheTest, LaterEngineComputesOnlyTheTail) {
  const std::vector<int32_t> prompt(100, 7);
  const auto request = FakeRequest(1, prompt, 5);
  Answer cold;
  {
    EngineCore engine_core(Config(), FakeExecutorFactory());
    cold = RunOne(engine_core, request);
    EXPECT_EQ(engine_core.GetStats().num_prompt_tokens, 100);
  }
  EngineCore engine_core(Config(), FakeExecutorFactory());
  const Answer warm = RunOne(engine_core, request);
  EXPECT_EQ(cold.token_ids, FakeGenerate(*request, 5, 259));
  EXPECT_EQ(warm.token_ids, cold.token_ids);
  EXPECT_EQ(warm.num_cached_tokens, 96);
  EXPECT_EQ(engine_core.GetStats().num_prompt_tokens, 4);
}

TEST_F(KVDiskCacheTest, OutputTokensAreSavedForTheNextTurn) {
  const auto first = FakeRequest(1, std::vector<int32_t>(40, 7), 60);
  std::vector<int32_t> next_prompt = first->prompt_token_ids;
  {
    EngineCore engine_core(Config(), FakeExecutorFactory());
    const Answer answer = RunOne(engine_core, first);
    next_prompt.insert(next_prompt.end(), answer.token_ids.begin(), answer.token_ids.end());
  }
  next_prompt.push_back(1);
  EngineCore engine_core(Config(), FakeExecutorFactory());
  // The last output token is never computed, so of the 100 tokens 99 are, which fill 6 blocks.
  EXPECT_EQ(RunOne(engine_core, FakeRequest(2, next_prompt, 1)).num_cached_tokens, 96);
}

TEST_F(KVDiskCacheTest, AbortedRequestIsSavedOnceItHasOutput) {
  const std::vector<int32_t> prompt(40, 7);
  {
    EngineCore engine_core(Config(), FakeExecutorFactory());
    EngineCoreOutputs outputs;
    engine_core.AddRequest(FakeRequest(1, prompt, 60));
    engine_core.Step(outputs);
    engine_core.AbortRequests(std::vector<RequestId>{1});
    RunAll(engine_core);
  }
  EngineCore engine_core(Config(), FakeExecutorFactory());
  EXPECT_EQ(RunOne(engine_core, FakeRequest(2, prompt, 1)).num_cached_tokens, 32);
}

TEST_F(KVDiskCacheTest, FailedRequestIsNotSaved) {
  const std::vector<int32_t> prompt(40, 7);
  FakeModel model;
  model.fails = [](const EngineCoreRequest&, const std::vector<int32_t>& tokens) { return tokens.size() >= 50; };
  {
    EngineCore engine_core(Config(), FakeExecutorFactory(model));
    EXPECT_EQ(RunOne(engine_core, FakeRequest(1, prompt, 60)).finish_reason, FinishReason::kError);
  }
  EngineCore engine_core(Config(), FakeExecutorFactory());
  EXPECT_EQ(RunOne(engine_core, FakeRequest(2, prompt, 1)).num_cached_tokens, 0);
}

TEST_F(KVDiskCacheTest, RequestsWithTheSamePromptWaitForOneLoad) {
  const std::vector<int32_t> prompt(100, 7);
  {
    EngineCore engine_core(Config(), FakeExecutorFactory());
    RunOne(engine_core, FakeRequest(1, prompt, 1));
  }
  EngineCore engine_core(Config(), FakeExecutorFactory());
  for (RequestId id = 1; id <= 5; ++id) engine_core.AddRequest(FakeRequest(id, prompt, 3));
  const Answers answers = RunAll(engine_core);
  for (RequestId id = 1; id <= 5; ++id) EXPECT_EQ(answers.at(id).num_cached_tokens, 96) << id;
  EXPECT_EQ(engine_core.GetStats().num_prompt_tokens, 5 * 4);
}

TEST_F(KVDiskCacheTest, CacheSaltSeparatesRequests) {
  const std::vector<int32_t> prompt(100, 7);
  const auto salted = [&](RequestId id, const std::string& salt) {
    auto request = std::make_shared<EngineCoreRequest>(*FakeRequest(id, prompt, 1));
    request->cache_salt = salt;
    return request;
  };
  {
    EngineCore engine_core(Config(), FakeExecutorFactory());
    RunOne(engine_core, salted(1, "a"));
  }
  EngineCore engine_core(Config(), FakeExecutorFactory());
  EXPECT_EQ(RunOne(engine_core, salted(2, "b")).num_cached_tokens, 0);
  EXPECT_EQ(RunOne(engine_core, salted(3, "")).num_cached_tokens, 0);
  EXPECT_EQ(RunOne(engine_core, salted(4, "a")).num_cached_tokens, 96);
}

TEST_F(KVDiskCacheTest, EverythingThatKVDependsOnSeparatesEngines) {
  const std::vector<int32_t> prompt(100, 7);
  {
    EngineCore engine_core(Config(), FakeExecutorFactory());
    RunOne(engine_core, FakeRequest(1, prompt, 1));
  }
  std::vector<VllmConfig> others(5, Config());
  others[0].kv_disk_cache.model_identity = "another model";
  others[1].cache.cache_dtype = kernels::KVDType::kInt8;
  others[2].parallel.tensor_parallel_size = 2;
  others[3].cache.block_size = 32;
  others[4].isa = kernels::BestIsa() == kernels::Isa::kGeneric ? kernels::Isa::kAvx2 : kernels::Isa::kGeneric;
  for (size_t i = 0; i < others.size(); ++i) {
    EngineCore engine_core(others[i], FakeExecutorFactory());
    EXPECT_EQ(RunOne(engine_core, FakeRequest(1, prompt, 1)).num_cached_tokens, 0) << i;
  }
  EngineCore engine_core(Config(), FakeExecutorFactory());
  EXPECT_EQ(RunOne(engine_core, FakeRequest(1, prompt, 1)).num_cached_tokens, 96);
}

TEST_F(KVDiskCacheTest, RequestThatIsAbortedWhileItLoadsIsForgotten) {
  const std::vector<int32_t> prompt(100, 7);
  {
    EngineCore engine_core(Config(), FakeExecutorFactory());
    RunOne(engine_core, FakeRequest(1, prompt, 1));
  }
  EngineCore engine_core(Config(), FakeExecutorFactory());
  EngineCoreOutputs outputs;
  engine_core.AddRequest(FakeRequest(1, prompt, 3));
  engine_core.Step(outputs);
  ASSERT_EQ(engine_core.scheduler().num_loading(), 1);
  engine_core.AbortRequests(std::vector<RequestId>{1});
  EXPECT_FALSE(engine_core.HasUnfinishedRequests());
  EXPECT_EQ(engine_core.scheduler().CheckIntegrity(), "");
  // The id may be used again, for other tokens, before the load ends.
  const auto request = FakeRequest(1, std::vector<int32_t>(100, 8), 3);
  EXPECT_EQ(RunOne(engine_core, request).token_ids, FakeGenerate(*request, 3, 259));
}

TEST_F(KVDiskCacheTest, PoolTooSmallForTheLoadStillRunsTheRequest) {
  const auto request = FakeRequest(1, std::vector<int32_t>(100, 7), 8);
  {
    EngineCore engine_core(Config(), FakeExecutorFactory());
    RunOne(engine_core, request);
  }
  VllmConfig config = Config();
  config.cache.num_blocks_override = 7;
  EngineCore engine_core(config, FakeExecutorFactory());
  EXPECT_EQ(RunOne(engine_core, request).token_ids, FakeGenerate(*request, 8, 259));
}

TEST_F(KVDiskCacheTest, PreemptedRequestsGetTheirBlocksBack) {
  VllmConfig config = Config();
  config.cache.num_blocks_override = 21;
  FakeModel model;
  model.on_step = [](int64_t, const SchedulerOutput&) { std::this_thread::sleep_for(std::chrono::microseconds(200)); };
  EngineCore engine_core(config, FakeExecutorFactory(model));
  std::vector<EngineCoreRequestPtr> requests;
  int64_t num_tokens = 0;
  for (RequestId id = 1; id <= 6; ++id) {
    requests.push_back(FakeRequest(id, std::vector<int32_t>(40, static_cast<int32_t>(id)), 120));
    engine_core.AddRequest(requests.back());
    num_tokens += 40 + 120 - 1;
  }
  const Answers answers = RunAll(engine_core);
  for (const EngineCoreRequestPtr& request : requests) {
    EXPECT_EQ(answers.at(request->request_id).token_ids, FakeGenerate(*request, 120, 259));
  }
  const SchedulerStats stats = engine_core.GetStats();
  EXPECT_GT(stats.num_preemptions, 0);
  EXPECT_GT(stats.kv_transfer.num_loaded_tokens, 0);
  // A preempted request computes again at most the tokens of an incomplete block.
  EXPECT_LE(stats.num_computed_tokens, num_tokens + stats.num_preemptions * 16);
}

TEST_F(KVDiskCacheTest, RequestsThatWaitForAnAbortedLoadStartAnother) {
  const std::vector<int32_t> prompt(100, 7);
  {
    EngineCore engine_core(Config(), FakeExecutorFactory());
    RunOne(engine_core, FakeRequest(1, prompt, 1));
  }
  EngineCore engine_core(Config(), FakeExecutorFactory());
  for (RequestId id = 1; id <= 3; ++id) engine_core.AddRequest(FakeRequest(id, prompt, 3));
  EngineCoreOutputs outputs;
  engine_core.Step(outputs);
  ASSERT_EQ(engine_core.scheduler().num_loading(), 3);
  engine_core.AbortRequests(std::vector<RequestId>{1});
  const Answers answers = RunAll(engine_core);
  EXPECT_EQ(answers.at(2).num_cached_tokens, 96);
  EXPECT_EQ(answers.at(3).num_cached_tokens, 96);
}

TEST_F(KVDiskCacheTest, TwoEnginesAtOnceShareTheirBlocks) {
  EngineCore first(Config(), FakeExecutorFactory());
  EngineCore second(Config(), FakeExecutorFactory());
  // A request makes the second engine look for new blocks, but at most once per second and not for itself.
  int64_t num_cached_tokens = 0;
  for (int32_t attempt = 1; attempt <= 20 && num_cached_tokens == 0; ++attempt) {
    const auto id = static_cast<RequestId>(2 * attempt);
    const std::vector<int32_t> prompt(100, attempt);
    RunOne(first, FakeRequest(id, prompt, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    RunOne(second, FakeRequest(id, std::vector<int32_t>(20, 100 + attempt), 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50 * attempt));
    const auto request = FakeRequest(id + 1, prompt, 1);
    const Answer answer = RunOne(second, request);
    EXPECT_EQ(answer.token_ids, FakeGenerate(*request, 1, 259));
    num_cached_tokens = answer.num_cached_tokens;
  }
  EXPECT_EQ(num_cached_tokens, 96);
  EXPECT_EQ(second.GetStats().kv_transfer.num_loaded_tokens, 96);
}

TEST_F(KVDiskCacheTest, EngineWithoutPrefixCachingHasNoDiskCache) {
  VllmConfig config = Config();
  config.cache.enable_prefix_caching = false;
  EngineCore engine_core(config, FakeExecutorFactory());
  EXPECT_NE(engine_core.ready().kv_disk_cache_failure, "");
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

// Any prefix of a long request can be continued, because the blocks that a window passes are saved as well.
TEST_F(KVDiskCacheTest, PrefixesOfModelsWithSlidingWindowsAreLoaded) {
  VllmConfig config = Config();
  config.model.max_model_len = 512;
  config.cache.num_blocks_override = 200;
  for (const std::vector<int64_t>& windows : {std::vector<int64_t>{0, 32}, {0, 20, 50}, {40}}) {
    FakeModel model;
    model.group_windows = windows;
    std::vector<int32_t> prompt(300, 7);
    prompt[0] = static_cast<int32_t>(windows.size());
    const auto first = FakeRequest(1, prompt, 40);
    {
      EngineCore engine_core(config, FakeExecutorFactory(model));
      EXPECT_EQ(engine_core.ready().kv_disk_cache_failure, "");
      EXPECT_EQ(RunOne(engine_core, first).token_ids, FakeGenerate(*first, 40, 259));
    }
    for (const size_t length : {20, 100, 250}) {
      std::vector<int32_t> other(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(length));
      other.push_back(200);
      const auto request = FakeRequest(2, other, 10);
      EngineCore engine_core(config, FakeExecutorFactory(model));
      const Answer answer = RunOne(engine_core, request);
      EXPECT_EQ(answer.token_ids, FakeGenerate(*request, 10, 259));
      EXPECT_EQ(answer.num_cached_tokens, static_cast<int64_t>(length / 16 * 16)) << windows.size() << " " << length;
    }
  }
}

TEST_F(KVDiskCacheTest, TracedEngineHasNoDiskCache) {
  TraceRecorder trace(temp_.path() + "/trace");
  EngineCore engine_core(Config(), FakeExecutorFactory(), nullptr, &trace);
  EXPECT_EQ(engine_core.ready().kv_disk_cache_failure, "a trace could not be replayed without its contents");
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

TEST_F(KVDiskCacheTest, DirectoryThatCannotBeUsedIsReported) {
  temp_.Write("kv", "a file");
  EngineCore engine_core(Config(), FakeExecutorFactory());
  EXPECT_NE(engine_core.ready().kv_disk_cache_failure, "");
  const auto request = FakeRequest(1, {1, 2, 3}, 5);
  EXPECT_EQ(RunOne(engine_core, request).token_ids, FakeGenerate(*request, 5, 259));
}

// A process may end soon after its first step.
TEST_F(KVDiskCacheTest, WarningsOfOpeningTheCacheAreThereAtOnce) {
  const std::string name = "0123456789abcdef.kvseg";
  { EngineCore(Config(), FakeExecutorFactory()); }
  ASSERT_EQ(mkfifo((directory_ + "/" + name).c_str(), 0600), 0);
  EngineCore engine_core(Config(), FakeExecutorFactory());
  EXPECT_NE(engine_core.TakeWarning().find(name), std::string::npos);
  EXPECT_EQ(engine_core.TakeWarning(), "");
}

TEST_F(KVDiskCacheTest, ThreadClientWakesUpForALoad) {
  const auto request = FakeRequest(1, std::vector<int32_t>(100, 7), 5);
  for (int run = 0; run < 2; ++run) {
    const auto client = MakeThreadClient(Config(), FakeExecutorFactory());
    client->AddRequest(request);
    Answers answers;
    EngineCoreOutputs outputs;
    while (answers[1].finish_reason == FinishReason::kNone) {
      client->GetOutputs(outputs, std::chrono::seconds(10));
      Collect(outputs, answers);
    }
    EXPECT_EQ(answers[1].token_ids, FakeGenerate(*request, 5, 259));
    EXPECT_EQ(answers[1].num_cached_tokens, run == 0 ? 0 : 96);
  }
}

// Invariant: with a cold, warm or damaged store, aborts, preemptions, cancelled steps and small pools, every request
// gets the same tokens.
TEST_F(KVDiskCacheTest, RandomWorkloadsProduceTheSameTokens) {
  std::mt19937 random(5);
  FakeModel model;
  model.cancels = [&](int64_t, const SchedulerOutput& step) -> int64_t {
    return random() % 12 == 0 ? static_cast<int64_t>(random() % (step.num_scheduled_tokens.size() + 1)) : -1;
  };
  const std::vector<int32_t> shared = RandomTokens(random, 120);
  auto recorded = std::make_shared<testing_support::RecordedOutputs>();
  const std::vector<std::vector<int64_t>> all_windows = {{0}, {0}, {0, 32}, {24}, {0, 16, 40}};
  int64_t num_cached_tokens = 0;
  int64_t num_loaded_tokens = 0;
  for (int round = 0; round < 100; ++round) {
    VllmConfig config = Config();
    config.model.max_model_len = 200;
    config.kv_disk_cache.max_bytes = round % 5 == 0 ? int64_t{100} << 10 : int64_t{4} << 20;
    model.group_windows = all_windows[random() % all_windows.size()];
    FakeModel calm_model;
    calm_model.group_windows = model.group_windows;
    config.cache.num_blocks_override =
        std::vector<int64_t>{13, 16, 30, 200}[random() % 4] * static_cast<int64_t>(model.group_windows.size());
    config.scheduler.max_num_seqs = std::vector<int64_t>{1, 3, 8, 64}[random() % 4];
    config.scheduler.max_num_batched_tokens = std::vector<int64_t>{5, 16, 100, 2048}[random() % 4];
    config.scheduler.policy = random() % 2 == 0 ? SchedulingPolicy::kFcfs : SchedulingPolicy::kPriority;
    if (random() % 3 == 0) config.speculative = testing_support::VerifyAll(1 + static_cast<int64_t>(random() % 6));
    EngineCore engine_core(config, testing_support::WithDrafts(FakeExecutorFactory(round % 2 == 0 ? model : calm_model),
                                                               testing_support::DraftKind::kMixed, recorded,
                                                               static_cast<uint32_t>(round)));
    ASSERT_EQ(engine_core.ready().kv_disk_cache_failure, "");

    Answers answers;
    std::map<RequestId, EngineCoreRequestPtr> requests;
    std::vector<RequestId> aborted;
    EngineCoreOutputs outputs;
    RequestId next_id = 1;
    for (int step = 0; step < 20000 && (next_id <= 30 || engine_core.HasRequests()); ++step) {
      while (next_id <= 30 && random() % 3 == 0) {
        std::vector<int32_t> prompt(shared.begin(), shared.begin() + static_cast<int>(random() % 120));
        const auto tail = RandomTokens(random, 1 + random() % 30, 2);
        prompt.insert(prompt.end(), tail.begin(), tail.end());
        auto request =
            std::make_shared<EngineCoreRequest>(*FakeRequest(next_id, prompt, 1 + static_cast<int64_t>(random() % 40)));
        request->priority = static_cast<int64_t>(random() % 3);
        request->interactive = random() % 10 == 0;
        if (random() % 8 == 0) request->cache_salt = "salt";
        requests[next_id++] = request;
        recorded->Add(request->prompt_token_ids, FakeGenerate(*request, 40, 259));
        engine_core.AddRequest(request);
      }
      if (random() % 20 == 0 && next_id > 1) {
        const std::vector<RequestId> ids = {1 + random() % (next_id - 1)};
        if (answers[ids[0]].finish_reason == FinishReason::kNone) aborted.push_back(ids[0]);
        engine_core.AbortRequests(ids);
      }
      engine_core.Step(outputs);
      Collect(outputs, answers);
      if (step % 16 == 0) {
        ASSERT_EQ(engine_core.scheduler().CheckIntegrity(), "");
      }
      if (random() % 200 == 0) Damage(random);
    }
    ASSERT_FALSE(engine_core.HasRequests());
    ASSERT_EQ(engine_core.scheduler().CheckIntegrity(), "");
    for (const auto& [id, request] : requests) {
      const Answer& answer = answers[id];
      const auto expected = FakeGenerate(*request, *request->sampling_params.max_tokens, 259);
      num_cached_tokens += answer.num_cached_tokens;
      if (std::find(aborted.begin(), aborted.end(), id) != aborted.end()) {
        ASSERT_TRUE(std::equal(answer.token_ids.begin(), answer.token_ids.end(), expected.begin()));
        continue;
      }
      ASSERT_EQ(answer.finish_reason, FinishReason::kLength) << "round " << round << " request " << id;
      ASSERT_EQ(answer.token_ids, expected) << "round " << round << " request " << id;
    }
    num_loaded_tokens += engine_core.GetStats().kv_transfer.num_loaded_tokens;
    if (random() % 3 == 0) Damage(random);
  }
  EXPECT_GT(num_cached_tokens, 1000);
  EXPECT_GT(num_loaded_tokens, 1000);
}

TEST_F(KVDiskCacheTest, BlocksAreLoadedOnlyIfThatIsFasterThanComputingThem) {
  VllmConfig config = Config();
  config.kv_disk_cache.loads_only_if_faster = true;
  testing::FakeExecutor executor(config, FakeModel());
  executor.InitializeKVCache(4);
  Request request(FakeRequest(1, std::vector<int32_t>(40, 7), 1));
  { DiskKVConnector(config, executor).Save(request, std::vector<SequenceBlock>{{0, 0, 1}, {0, 1, 2}}); }
  DiskKVConnector connector(config, executor);
  // Nothing is measured yet, so the blocks are loaded.
  const KVConnector::StartedLoad load = connector.StartLoad(request, 0, 2);
  ASSERT_NE(load.load_id, 0);
  const KVConnector::FinishedLoad* finished = nullptr;
  while ((finished = connector.NextFinishedLoad()) == nullptr) connector.WaitForLoad(std::chrono::milliseconds(1000));
  EXPECT_EQ(finished->load_id, load.load_id);
  EXPECT_EQ(finished->blocks.size(), 2u);
  connector.RecordStep(64, std::chrono::duration<double>(1e-12));
  EXPECT_EQ(connector.StartLoad(request, 0, 2).load_id, 0);
  connector.RecordStep(64, std::chrono::duration<double>(1e6));
  EXPECT_NE(connector.StartLoad(request, 0, 2).load_id, 0);
}

class KVDiskCacheModelTest : public KVDiskCacheTest {
 protected:
  // Runs ten prompts with the bundled model. Sets num_prompt_tokens to the number of computed prompt tokens.
  std::vector<std::vector<int32_t>> Run(bool use_disk, int64_t ranks, std::optional<kernels::KVDType> dtype,
                                        int64_t& num_prompt_tokens) const {
    VllmConfig config;
    config.model = LoadModelConfig(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model");
    config.parallel.threads_per_rank = 1;
    config.parallel.tensor_parallel_size = ranks;
    config.cache.kv_cache_memory_bytes = int64_t{64} << 20;
    config.cache.cache_dtype = dtype;
    config.Finalize();
    if (use_disk) SetCache(config);
    EngineCore engine_core(config, MakeExecutor);
    EXPECT_EQ(engine_core.ready().kv_disk_cache_failure, "");
    for (RequestId id = 1; id <= 10; ++id) {
      std::vector<int32_t> prompt;
      for (int32_t i = 0; i < 65; ++i) prompt.push_back(300 + i + (i >= 32 ? static_cast<int32_t>(id) * 7 : 0));
      auto request = FakeRequest(id, prompt, 20);
      engine_core.AddRequest(request);
    }
    std::vector<std::vector<int32_t>> all;
    for (const auto& [id, answer] : RunAll(engine_core)) all.push_back(answer.token_ids);
    num_prompt_tokens = engine_core.GetStats().num_prompt_tokens;
    return all;
  }
};

TEST_F(KVDiskCacheModelTest, OutputIsTheSameColdWarmAndDamaged) {
  std::mt19937 random(1);
  for (const int64_t ranks : {1, 2}) {
    for (const std::optional<kernels::KVDType> dtype : {std::optional<kernels::KVDType>(), {kernels::KVDType::kInt8}}) {
      int64_t num_prompt_tokens = 0;
      const auto expected = Run(false, ranks, dtype, num_prompt_tokens);
      ASSERT_EQ(expected.size(), 10u);
      EXPECT_EQ(Run(true, ranks, dtype, num_prompt_tokens), expected);
      EXPECT_GT(num_prompt_tokens, 10);
      EXPECT_EQ(Run(true, ranks, dtype, num_prompt_tokens), expected);
      EXPECT_EQ(num_prompt_tokens, 10);  // the last token of each prompt
      for (int i = 0; i < 20; ++i) Damage(random);
      EXPECT_EQ(Run(true, ranks, dtype, num_prompt_tokens), expected);
    }
  }
}

}  // namespace
}  // namespace vllm
