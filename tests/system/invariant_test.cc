// Tests the invariant that a request's result does not depend on batching or scheduling, to the last bit. The model is
// app/guide_model. The requests mix text and token prompts, stop strings, seeds, n, logprobs and shared prefixes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/model_loader/hf/hf_config.h"
#include "kernels/isa.h"
#include "tests/support/cancelling_executor.h"
#include "tests/system/mixed_requests.h"
#include "tests/system/run_requests.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm {
namespace {

using testing_support::CancellingExecutor;
using testing_support::EngineSetup;
using testing_support::MakeConfig;
using testing_support::MixedRequests;
using testing_support::RunHow;
using testing_support::RunRequests;
using testing_support::RunResult;
using testing_support::TestRequest;

class InvariantTest : public testing::Test {
 protected:
  static std::string Directory() { return std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model"; }

  void SetUp() override {
    tokenizer_ = tokenizer::LoadTokenizerJson(Directory() + "/tokenizer.json");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    requests_ = MixedRequests(16, 60);
#else
    requests_ = MixedRequests(48, 200);
#endif
    base_ = RunRequests(MakeConfig(Directory(), {.max_num_seqs = 1}), tokenizer_, requests_, {.one_at_a_time = true})
                .outputs;
    ASSERT_EQ(base_.size(), requests_.size());
    for (const auto& [id, output] : base_) {
      if (output.rfind("rejected", 0) == 0) ADD_FAILURE() << id << " " << output;
    }
  }

  void ExpectBase(const EngineSetup& setup, const RunHow& how = {}) {
    const RunResult result = RunRequests(MakeConfig(Directory(), setup), tokenizer_, requests_, how);
    stats_ = result.stats;
    ASSERT_EQ(result.outputs.size(), base_.size());
    for (const auto& [id, output] : base_) EXPECT_EQ(result.outputs.at(id), output) << id;
  }

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::vector<TestRequest> requests_;
  std::map<std::string, std::string> base_;
  SchedulerStats stats_;
};

TEST_F(InvariantTest, BatchSizesAndTokenBudgetsDoNotChangeResults) {
  for (const int64_t seqs : {4, 64}) {
    for (const int64_t tokens : {16, 100, 2048}) ExpectBase({.max_num_seqs = seqs, .max_num_batched_tokens = tokens});
  }
}

TEST_F(InvariantTest, PrefixCachingDoesNotChangeResults) {
  ExpectBase({.prefix_caching = false});
  ExpectBase({.prefix_caching = true}, {.in_process = true});
  EXPECT_GT(stats_.prefix_cache.hits, 0);
}

TEST_F(InvariantTest, PreemptionDoesNotChangeResults) {
  // The longest sequence needs at most 19 of the 24 blocks.
  for (const bool caching : {true, false}) {
    ExpectBase({.max_num_seqs = 64, .max_num_batched_tokens = 100, .prefix_caching = caching, .num_blocks = 24},
               {.in_process = true});  // all requests arrive before the first step
    EXPECT_GT(stats_.num_preemptions, 0);
  }
}

TEST_F(InvariantTest, SchedulesDoNotChangeResultsWithAnInt8OrFloat16KVCache) {
  for (const kernels::KVDType dtype : {kernels::KVDType::kInt8, kernels::KVDType::kFloat16}) {
    base_ = RunRequests(MakeConfig(Directory(), {.max_num_seqs = 1, .cache_dtype = dtype}), tokenizer_, requests_,
                        {.one_at_a_time = true})
                .outputs;
    ExpectBase({.max_num_seqs = 64, .max_num_batched_tokens = 100, .cache_dtype = dtype});
    ExpectBase({.prefix_caching = false, .threads = 2, .cache_dtype = dtype});
    ExpectBase({.max_num_seqs = 64, .max_num_batched_tokens = 100, .num_blocks = 24, .cache_dtype = dtype},
               {.in_process = true});
  }
}

TEST_F(InvariantTest, SharedPrefixesOfWholePartitionsDoNotChangeResults) {
  // Attention reads each whole partition of a shared prefix once for all requests that share it. The 600 shared tokens
  // are two whole partitions and part of a third.
  requests_.clear();
  std::mt19937 random(9);
  const auto token = [&] { return static_cast<int32_t>(std::uniform_int_distribution<int>(300, 1500)(random)); };
  std::vector<int32_t> shared(600);
  for (int32_t& id : shared) id = token();
  for (int i = 0; i < 8; ++i) {
    std::vector<int32_t> ids(shared.begin(), shared.begin() + (i % 4 == 3 ? 300 : 600));
    for (int n = 10 * i + 1; n > 0; --n) ids.push_back(token());
    TestRequest request;
    request.id = "request " + std::to_string(i);
    request.prompt = ids;
    request.params.max_tokens = 12;
    request.params.temperature = 0.8;
    request.params.seed = static_cast<uint64_t>(i);
    request.params.ignore_eos = true;
    request.params.logprobs = 2;
    if (i == 2) request.params.n = 3;
    requests_.push_back(request);
  }
  for (const std::optional<kernels::KVDType> dtype :
       {std::optional<kernels::KVDType>(), std::optional(kernels::KVDType::kInt8)}) {
    base_ = RunRequests(MakeConfig(Directory(), {.max_num_seqs = 1, .cache_dtype = dtype}), tokenizer_, requests_,
                        {.one_at_a_time = true})
                .outputs;
    ExpectBase({.cache_dtype = dtype});
    EXPECT_GT(stats_.prefix_cache.hits, 0);
    ExpectBase({.max_num_seqs = 5, .threads = 3, .cache_dtype = dtype});
    ExpectBase({.prefix_caching = false, .threads = 2, .cache_dtype = dtype});
  }
}

TEST_F(InvariantTest, ArrivalOrderAndPriorityDoNotChangeResults) {
  std::shuffle(requests_.begin(), requests_.end(), std::mt19937(5));
  ExpectBase({});
  ExpectBase({.max_num_seqs = 5, .policy = SchedulingPolicy::kPriority, .long_prefill_token_threshold = 30});
}

TEST_F(InvariantTest, InteractiveRequestsDoNotChangeResults) {
  for (size_t i = 0; i < requests_.size(); i += 3) requests_[i].options.interactive = true;
  for (const bool in_process : {true, false}) {
    const RunHow how = {.in_process = in_process, .num_steps_between = 2};
    ExpectBase({.max_num_seqs = 4}, how);
    ExpectBase({.max_num_seqs = 16, .max_num_batched_tokens = 100, .num_blocks = 24}, how);
    if (in_process) {
      EXPECT_GT(stats_.num_preemptions, 0);
    }
    ExpectBase({.max_num_seqs = 3, .prefix_caching = false, .threads = 2, .policy = SchedulingPolicy::kPriority}, how);
  }
}

TEST_F(InvariantTest, ThreadsPerRankAndTheClientDoNotChangeResults) {
  ExpectBase({.threads = 2});
  ExpectBase({.threads = 3});
  ExpectBase({}, {.in_process = true});
}

TEST_F(InvariantTest, NumberOfRanksDoesNotChangeResults) {
  for (const int64_t ranks : {2, 4}) {
    ExpectBase({.max_num_seqs = 64, .ranks = ranks});
    ExpectBase({.max_num_seqs = 7,
                .max_num_batched_tokens = 33,
                .prefix_caching = false,
                .num_blocks = 24,
                .ranks = ranks,
                .threads = 2});
  }
}

TEST_F(InvariantTest, NumberOfEnginesDoesNotChangeResults) {
  for (const int64_t engines : {2, 3}) {
    ExpectBase({.engines = engines});
    EXPECT_GT(stats_.prefix_cache.hits, 0);
    ExpectBase({.max_num_seqs = 5, .max_num_batched_tokens = 100, .num_blocks = 24, .engines = engines});
    ExpectBase({.prefix_caching = false, .threads = 2, .policy = SchedulingPolicy::kPriority, .engines = engines},
               {.num_steps_between = 1});
  }
  for (size_t i = 0; i < requests_.size(); i += 3) requests_[i].options.interactive = true;
  ExpectBase({.max_num_seqs = 4, .engines = 2}, {.num_steps_between = 2});
}

TEST_F(InvariantTest, NumberOfEnginesDoesNotChangeResultsOfTwoRanks) {
  ExpectBase({.max_num_seqs = 64, .ranks = 2, .engines = 2});
}

TEST_F(InvariantTest, CancelledStepsDoNotChangeResults) {
  // Every third attempt at a step is cancelled after a varying number of checks of the flag, if it makes that many
  // checks. So prefills and decodes are interrupted in different layers.
  for (const int64_t threads : {1, 2}) {
    int64_t num_cancelled = 0;
    const auto plan = [&num_cancelled](int64_t attempt) { return attempt % 3 == 2 ? num_cancelled++ * 7 % 120 : -1; };
    const RunHow how = {.in_process = true, .factory = CancellingExecutor::Factory(plan)};
    ExpectBase({.max_num_seqs = 16, .max_num_batched_tokens = 100, .threads = threads}, how);
    ExpectBase({.max_num_seqs = 64, .max_num_batched_tokens = 2048, .num_blocks = 24, .threads = threads}, how);
    ExpectBase({.max_num_seqs = 7, .prefix_caching = false, .threads = threads}, how);
    EXPECT_GT(num_cancelled, 30);
  }
}

TEST_F(InvariantTest, CancelledStepsDoNotChangeResultsOfTwoRanks) {
  int64_t num_cancelled = 0;
  const auto plan = [&num_cancelled](int64_t attempt) { return attempt % 3 == 2 ? num_cancelled++ * 13 % 250 : -1; };
  const RunHow how = {.in_process = true, .factory = CancellingExecutor::Factory(plan)};
  ExpectBase({.max_num_seqs = 16, .max_num_batched_tokens = 100, .ranks = 2}, how);
  ExpectBase({.max_num_seqs = 64, .num_blocks = 24, .ranks = 2}, how);
  EXPECT_GT(num_cancelled, 30);
}

TEST_F(InvariantTest, SchedulesDoNotChangeResultsForAnyInstructionSetOrType) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  requests_.resize(3);
#else
  requests_.resize(12);
#endif
  for (const kernels::Isa isa : kernels::AvailableIsas()) {
#if defined(__SANITIZE_THREAD__)
    if (isa == kernels::Isa::kGeneric) continue;  // too slow: ThreadSanitizer checks each access of its scalar loops
#endif
    for (const kernels::DType dtype : {kernels::DType::kFloat32, kernels::DType::kBFloat16, kernels::DType::kFloat16}) {
      base_ =
          RunRequests(MakeConfig(Directory(), {.max_num_seqs = 3, .dtype = dtype, .isa = isa}), tokenizer_, requests_)
              .outputs;
      ExpectBase({.max_num_batched_tokens = 60, .dtype = dtype, .isa = isa});
      ExpectBase({.max_num_batched_tokens = 60, .ranks = 2, .dtype = dtype, .isa = isa});
    }
  }
}

}  // namespace
}  // namespace vllm
