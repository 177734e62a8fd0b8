// Tests models with sliding-window layers, full-attention layers or both. Under any schedule, their results must be
// bitwise equal to those of a model that keeps whole sequences in every layer and uses the window only as a mask.
// Blocks that have left a window must never be read.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/kv_probe_model.h"
#include "tests/support/temp_directory.h"
#include "tests/system/mixed_requests.h"
#include "tests/system/run_requests.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm {
namespace {

using testing_support::EngineSetup;
using testing_support::RunHow;
using testing_support::RunRequests;
using testing_support::RunResult;
using testing_support::SetKVProbePlan;
using testing_support::TestRequest;

struct Variant {
  const char* name;
  std::vector<int64_t> windows;  // per layer; 0 means full attention
  // A number of blocks: enough for the longest request alone with chunks of up to 64 tokens, but few enough to cause
  // preemptions.
  int64_t tiny_pool;
  int64_t global_head_dim = 0;  // of layers with full attention, if it differs from that of the others
};

std::ostream& operator<<(std::ostream& out, const Variant& variant) { return out << variant.name; }

class KVGroupsTest : public testing::TestWithParam<Variant> {
 protected:
  static std::string Directory() { return std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model"; }

  static VllmConfig MakeConfig(const EngineSetup& setup) {
    VllmConfig config = testing_support::MakeConfig(Directory(), setup);
    config.model.architecture = "KVProbeForCausalLM";
    const std::vector<int64_t>& windows = GetParam().windows;
    // If the number of layers differs from that of the checkpoint, use dummy weights, which are the same at each load.
    if (static_cast<int64_t>(windows.size()) != config.model.num_hidden_layers) {
      config.load.load_format = LoadFormat::kDummy;
    }
    config.model.num_hidden_layers = static_cast<int64_t>(windows.size());
    config.model.layers.assign(windows.size(), config.model.layers[0]);
    for (size_t i = 0; i < windows.size(); ++i) config.model.layers[i].sliding_window = windows[i];
    if (GetParam().global_head_dim > 0) {
      config.load.load_format = LoadFormat::kDummy;
      config.model.global_head_dim = GetParam().global_head_dim;
      // Llama has one rotary table for all layers.
      for (LayerConfig& layer : config.model.layers) layer.use_rope = false;
    }
    config.Finalize();
    return config;
  }

  void SetUp() override {
    tokenizer_ = tokenizer::LoadTokenizerJson(Directory() + "/tokenizer.json");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    MakeRequests(8, 120);
#else
    MakeRequests(24, 250);
#endif
    MakeBase({.max_num_seqs = 1, .prefix_caching = false});
  }
  void TearDown() override { SetKVProbePlan({}); }

  void MakeRequests(int count, int64_t max_prompt) {
    std::mt19937 random(7);
    const auto pick = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    std::vector<int32_t> shared;
    for (int i = 0; i < 90; ++i) shared.push_back(static_cast<int32_t>(pick(300, 1500)));
    for (int i = 0; i < count; ++i) {
      TestRequest request;
      request.id = "request " + std::to_string(i);
      std::vector<int32_t> ids;
      if (i % 2 == 1) ids.assign(shared.begin(), shared.begin() + pick(20, 90));
      for (int64_t n = pick(1, max_prompt); n > 0; --n) ids.push_back(static_cast<int32_t>(pick(300, 1500)));
      // Repeat some prompts, so that long prefixes hit the cache.
      if (i % 5 == 4) ids = std::get<std::vector<int32_t>>(requests_[static_cast<size_t>(i - 2)].prompt);
      request.prompt = ids;
      request.params.max_tokens = i == 0 ? 150 : pick(1, 40);
      request.params.ignore_eos = true;
      request.params.temperature = i % 3 == 0 ? 0.0 : 0.9;
      request.params.seed = static_cast<uint64_t>(i);
      if (i % 4 == 2) request.params.logprobs = 3;
      if (i % 8 == 6) request.params.prompt_logprobs = 2;
      request.options.priority = i % 3;
      requests_.push_back(request);
    }
  }

  void MakeBase(const EngineSetup& setup) {
    SetKVProbePlan({.whole_sequences = true});
    base_ = RunRequests(MakeConfig(setup), tokenizer_, requests_, {.one_at_a_time = true}).outputs;
    SetKVProbePlan({});
    ASSERT_EQ(base_.size(), requests_.size());
    for (const auto& [id, output] : base_) {
      ASSERT_NE(output.rfind("rejected", 0), 0u) << id << " " << output;
      ASSERT_NE(output.find("error <>"), std::string::npos) << id << " " << output;
    }
  }

  void ExpectBase(const EngineSetup& setup, const RunHow& how = {}) {
    const RunResult result = RunRequests(MakeConfig(setup), tokenizer_, requests_, how);
    stats_ = result.stats;
    ASSERT_EQ(result.outputs.size(), base_.size());
    for (const auto& [id, output] : base_) EXPECT_EQ(result.outputs.at(id), output) << id;
  }

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::vector<TestRequest> requests_;
  std::map<std::string, std::string> base_;
  SchedulerStats stats_;
};

TEST_P(KVGroupsTest, BatchesAndChunksDoNotChangeResults) {
  ExpectBase({.max_num_seqs = 1, .prefix_caching = false}, {.one_at_a_time = true});
  for (const int64_t tokens : {7, 33, 2048}) ExpectBase({.max_num_batched_tokens = tokens, .prefix_caching = false});
  ExpectBase({.prefix_caching = false, .block_size = 32, .threads = 2});
}

TEST_P(KVGroupsTest, PrefixCachingDoesNotChangeResults) {
  ExpectBase({.max_num_seqs = 1}, {.one_at_a_time = true});
  EXPECT_GT(stats_.prefix_cache.hits, 0);
  ExpectBase({.max_num_seqs = 3, .max_num_batched_tokens = 50, .block_size = 32});
  ExpectBase({.max_num_seqs = 3, .long_prefill_token_threshold = 30});
}

TEST_P(KVGroupsTest, DiskCacheDoesNotChangeResults) {
  const TempDirectory temp;
  EngineSetup setup;
  setup.max_num_seqs = 3;
  setup.kv_disk_cache = temp.path() + "/kv";
  ExpectBase(setup);
  EXPECT_GT(stats_.kv_transfer.num_saved_tokens, 0);
  ExpectBase(setup);
  EXPECT_GT(stats_.kv_transfer.num_loaded_tokens, 0);
  setup.max_num_seqs = 128;
  setup.max_num_batched_tokens = 50;
  ExpectBase(setup);
}

TEST_P(KVGroupsTest, PreemptionDoesNotChangeResults) {
  for (const bool caching : {true, false}) {
    ExpectBase({.max_num_seqs = 64,
                .max_num_batched_tokens = 64,
                .prefix_caching = caching,
                .num_blocks = GetParam().tiny_pool,
                .reserve_full_isl = false},
               {.in_process = true});  // all requests arrive before the first step
    EXPECT_GT(stats_.num_preemptions, 0);
  }
}

TEST_P(KVGroupsTest, ArrivalOrderAndPriorityDoNotChangeResults) {
  std::shuffle(requests_.begin(), requests_.end(), std::mt19937(5));
  ExpectBase({.max_num_batched_tokens = 100});
  ExpectBase({.max_num_seqs = 5,
              .max_num_batched_tokens = 64,
              .num_blocks = GetParam().tiny_pool,
              .policy = SchedulingPolicy::kPriority,
              .long_prefill_token_threshold = 30});
}

TEST_P(KVGroupsTest, BlocksOutsideTheWindowsAreNeverRead) {
  requests_.resize(std::min<size_t>(requests_.size(), 12));
  MakeBase({.max_num_seqs = 1, .prefix_caching = false});
  SetKVProbePlan({.poison = true});
  ExpectBase({.max_num_batched_tokens = 64, .num_blocks = GetParam().tiny_pool});
  ExpectBase(
      {.max_num_seqs = 4, .max_num_batched_tokens = 17, .prefix_caching = false, .num_blocks = GetParam().tiny_pool});
}

TEST_P(KVGroupsTest, TwoRanksInBFloat16MatchWholeSequences) {
  requests_.resize(std::min<size_t>(requests_.size(), 12));
  MakeBase({.max_num_seqs = 1, .prefix_caching = false, .dtype = kernels::DType::kBFloat16});
  ExpectBase({.max_num_batched_tokens = 64,
              .num_blocks = GetParam().tiny_pool,
              .ranks = 2,
              .dtype = kernels::DType::kBFloat16});
}

// "Padded" has five sliding-window layers and four full-attention layers. They form two groups, and the full-attention
// group is padded to five layers. "Packed" has blocks with room for one full-attention layer or two of the others, and
// four groups.
INSTANTIATE_TEST_SUITE_P(Windows, KVGroupsTest,
                         testing::Values(Variant{"FullAndTwoWindows", {32, 0, 32, 100}, 62},
                                         Variant{"EveryOtherLayerSlides", {40, 0, 40, 0}, 42},
                                         Variant{"OnlyOneWindow", {48, 48, 48, 48}, 10},
                                         Variant{"NoWindow", {0, 0, 0, 0}, 30},
                                         Variant{"Padded", {20, 0, 20, 0, 20, 0, 20, 0, 20}, 40},
                                         Variant{"Packed", {40, 40, 0, 40, 40, 40}, 60, 64}),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace vllm
