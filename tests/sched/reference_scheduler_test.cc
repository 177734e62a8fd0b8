// Compares the scheduler with the reference scheduler over random steps with arrivals, aborts (also during a step),
// failing requests, rollbacks, priorities, interactive requests, tiny pools, KV-cache groups, shared prefixes, salts,
// chunking and thresholds. $VLLMCLI_STEPS sets the minimum number of steps of SchedulersAgreeOverRandomSteps; the test
// with hash collisions runs at least a tenth of that number.
#include "tests/sched/reference_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "engine/trace/trace_recorder.h"
#include "engine/trace/trace_replay.h"
#include "tests/sched/scheduler_harness.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kDefaultSteps = 40'000;
#else
constexpr int64_t kDefaultSteps = 1'000'000;
#endif

int64_t NumSteps() {
  const char* text = std::getenv("VLLMCLI_STEPS");
  return text != nullptr && std::atoll(text) > 0 ? std::atoll(text) : kDefaultSteps;
}

// A run of the scheduler and the reference scheduler with one random configuration.
class Episode {
 public:
  explicit Episode(uint64_t seed, BlockHashFunction hash_function)
      : random_(seed),
        options_(RandomOptions(hash_function)),
        harness_(options_),
        reference_(options_.Config(), options_.Cache(), options_.max_model_len) {
    harness_.next_token = [](RequestId id, int64_t position) {
      return static_cast<int32_t>((id * 7 + static_cast<uint64_t>(position) * 13) % 11 % 4);
    };
  }

  void Run(int64_t num_steps) {
    for (int64_t i = 0; i < num_steps && !testing::Test::HasFailure(); ++i) {
      if (Chance(busy_ ? 60 : 15)) AddRandom();
      if (Chance(3)) AbortRandom();
      if (Chance(1)) busy_ = !busy_;
      Step(i % 16 == 0);
    }
    while (harness_.scheduler.HasUnfinishedRequests() && !testing::Test::HasFailure()) Step(false);
    harness_.Schedule();
    EXPECT_TRUE(harness_.output->num_scheduled_tokens.empty());
    EXPECT_EQ(harness_.scheduler.CheckIntegrity(), "");
    EXPECT_EQ(harness_.scheduler.kv_cache().pool().num_free_blocks(), options_.num_blocks);
    EXPECT_TRUE(harness_.ResetPrefixCache());
  }

  void RecordTo(TraceRecorder* recorder) { harness_.RecordTo(recorder); }

  int64_t num_steps() const { return num_steps_; }
  int64_t num_preemptions() const { return num_preemptions_; }
  int64_t num_hit_tokens() const { return num_hit_tokens_; }
  int64_t num_finished() const { return num_finished_; }
  int64_t num_rejected() const { return num_rejected_; }
  int64_t num_scheduled() const { return num_scheduled_; }
  int64_t num_rolled_back() const { return num_rolled_back_; }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low + 1)));
  }
  bool Chance(uint64_t percent) { return Below(100) < percent; }

  SchedulerOptions RandomOptions(BlockHashFunction hash_function) {
    SchedulerOptions options;
    options.hash_function = hash_function;
    options.block_size = Between(1, 6);
    if (Chance(60)) options.group_windows = RandomWindows();
    options.num_blocks = Between(2, 40) * (options.group_windows.size() > 1 ? 2 : 1);
    options.enable_prefix_caching = Chance(75);
    options.max_num_batched_tokens = Between(1, Chance(40) ? 12 : 200);
    options.max_num_seqs = Between(1, 12);
    options.long_prefill_token_threshold = Chance(40) ? Between(1, 20) : 0;
    options.enable_chunked_prefill = Chance(70);
    options.policy = Chance(50) ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
    options.scheduler_reserve_full_isl = Chance(60);
    options.max_model_len = Chance(50) ? Between(2, 80) : 1000;
    return options;
  }

  // Full-attention groups come first. At least one window is longer than one token, because a model with only windows
  // of one token needs no cache.
  std::vector<int64_t> RandomWindows() {
    std::vector<int64_t> windows;
    for (int64_t i = Between(0, 2); i > 0; --i) windows.push_back(0);
    for (int64_t i = Between(1, 2); i > 0; --i) windows.push_back(Between(2, Chance(30) ? 60 : 15));
    if (Chance(10)) windows.push_back(1);
    return windows;
  }

  void AddRandom() {
    const RequestId id = ++last_id_;
    const int64_t pool_tokens =
        options_.num_blocks * options_.block_size / static_cast<int64_t>(options_.group_windows.size());
    const int64_t length =
        Chance(5) ? Between(1, pool_tokens + 3) : Between(1, std::max<int64_t>(1, pool_tokens / (Chance(50) ? 2 : 6)));
    std::vector<int32_t> prompt;
    const uint64_t family = Below(3);
    for (int64_t i = 0; i < length; ++i) {
      prompt.push_back(static_cast<int32_t>((family + static_cast<uint64_t>(i) * (family + 1)) % 4));
    }
    if (Chance(50)) prompt[Below(prompt.size())] = static_cast<int32_t>(Below(4));
    RequestSpec spec;
    spec.max_tokens = Between(1, Chance(10) ? pool_tokens + 20 : 20);
    spec.ignore_eos = Chance(70);
    spec.priority = Between(0, 2);
    spec.interactive = has_interactive_ && Chance(10);
    spec.arrival_ms = static_cast<int64_t>(id / 2);
    if (Chance(15)) spec.cache_salt = std::string(1, static_cast<char>('a' + Below(2)));
    spec.edit = [&](SamplingParams& params) {
      params.eos_token_id = 3;
      if (Chance(20)) params.stop_token_ids = {static_cast<int32_t>(Below(4))};
      if (Chance(20)) params.min_tokens = Between(0, *params.max_tokens);
      if (Chance(10)) params.prompt_logprobs = 1;
    };
    const EngineCoreRequestPtr request = MakeRequest(id, std::move(prompt), spec);
    std::string rejection_reason;
    const bool accepted = harness_.TryAdd(request, &rejection_reason);
    EXPECT_EQ(accepted, reference_.AddRequest(request)) << rejection_reason;
    EXPECT_EQ(accepted, rejection_reason.empty());
    if (accepted) alive_.push_back(id);
    num_rejected_ += !accepted;
  }

  void AbortRandom() {
    if (alive_.empty()) return;
    const RequestId id = alive_[Below(alive_.size())];
    harness_.Abort(id);
    reference_.Abort(id);
    std::erase(alive_, id);
  }

  void Step(bool check_integrity) {
    ++num_steps_;
    const bool had_work = harness_.scheduler.HasUnfinishedRequests();
    const SchedulerOutput& output = harness_.Schedule();
    const ReferenceScheduler::Step expected = reference_.Schedule();
    ASSERT_EQ(output.num_scheduled_tokens.size(), expected.scheduled.size()) << Describe();
    for (size_t i = 0; i < expected.scheduled.size(); ++i) {
      ASSERT_EQ(output.num_scheduled_tokens[i].request_id, expected.scheduled[i].first) << Describe();
      ASSERT_EQ(output.num_scheduled_tokens[i].num_tokens, expected.scheduled[i].second) << Describe();
    }
    ASSERT_EQ(output.preempted_req_ids, expected.preempted) << Describe();
    ASSERT_TRUE(!had_work || output.total_num_scheduled_tokens > 0) << "no progress: " << Describe();
    num_preemptions_ += static_cast<int64_t>(expected.preempted.size());
    num_scheduled_ += static_cast<int64_t>(expected.scheduled.size());
    CompareState();
    // An abort may arrive while the workers compute.
    if (Chance(3)) AbortRandom();
    if (rolls_back_ && Chance(10)) {
      ++num_rolled_back_;
      harness_.RollBack();
      reference_.RollBack(expected);
      CompareState();
      ASSERT_EQ(check_integrity ? harness_.scheduler.CheckIntegrity() : "", "") << Describe();
      return;
    }

    std::vector<RequestId> failing;
    harness_.edit_output = [&](ModelRunnerOutput& runner) {
      if (runner.request_ids.empty() || !Chance(1)) return;
      const size_t index = Below(runner.request_ids.size());
      failing.push_back(runner.request_ids[index]);
      runner.failed.push_back({failing.back(), "nan"});
      const size_t begin = runner.sampled_offsets[index];
      if (runner.sampled_offsets[index + 1] == begin) return;
      runner.sampled_token_ids.erase(runner.sampled_token_ids.begin() + static_cast<std::ptrdiff_t>(begin));
      for (size_t i = index + 1; i < runner.sampled_offsets.size(); ++i) --runner.sampled_offsets[i];
    };
    harness_.Update();
    for (const RequestId id : failing) {
      if (reference_.Find(id) == nullptr) continue;
      EXPECT_EQ(harness_.results.at(id).reason, FinishReason::kError);
      reference_.Fail(id);
      std::erase(alive_, id);
    }
    for (const auto& [id, num_tokens] : expected.scheduled) {
      const auto* tracked = reference_.Find(id);
      if (tracked == nullptr || !reference_.Samples(id)) continue;
      const auto position = static_cast<int64_t>(tracked->token_ids.size());
      const int64_t num_cached = tracked->num_cached;
      const int64_t num_preempted = tracked->num_preemptions;
      const FinishReason reason = reference_.AppendToken(id, harness_.next_token(id, position));
      ASSERT_TRUE(harness_.results.contains(id)) << Describe();
      const SchedulerHarness::Result& result = harness_.results[id];
      ASSERT_EQ(result.reason, reason) << "request " << id << ": " << Describe();
      ASSERT_EQ(result.num_cached_tokens, num_cached) << Describe();
      ASSERT_EQ(result.num_preemptions, num_preempted) << Describe();
      if (reason == FinishReason::kNone) continue;
      ++num_finished_;
      num_hit_tokens_ += num_cached;
      std::erase(alive_, id);
      harness_.results.erase(id);
    }
    ASSERT_EQ(alive_.size(), reference_.num_requests());
    ASSERT_EQ(check_integrity ? harness_.scheduler.CheckIntegrity() : "", "") << Describe();
  }

  void CompareState() {
    ASSERT_EQ(static_cast<size_t>(harness_.scheduler.num_waiting()), reference_.num_waiting()) << Describe();
    const auto running = reference_.running();
    ASSERT_EQ(static_cast<size_t>(harness_.scheduler.num_running()), running.size()) << Describe();
    for (size_t i = 0; i < running.size(); ++i) {
      ASSERT_EQ(harness_.scheduler.running()[i]->id(), running[i]) << Describe();
      for (size_t g = 0; g < options_.group_windows.size(); ++g) {
        ASSERT_EQ(harness_.BlockIds(running[i], g), reference_.Find(running[i])->blocks[g])
            << "group " << g << ", " << Describe();
      }
    }
    // The trie must not become full: requests would then stop publishing, but the reference has no such limit.
    const PrefixTrie& prefix_trie = harness_.scheduler.kv_cache().pool().prefix_trie();
    ASSERT_LT(prefix_trie.size(), options_.enable_prefix_caching ? prefix_trie.capacity() : 1) << Describe();
    const auto num_free = static_cast<size_t>(harness_.scheduler.kv_cache().pool().num_free_blocks());
    ASSERT_EQ(num_free, reference_.num_free_blocks()) << Describe();
  }

  std::string Describe() const {
    std::string windows;
    for (const int64_t window : options_.group_windows) windows += std::to_string(window) + ",";
    return "step " + std::to_string(num_steps_) + ", windows " + windows + " blocks " +
           std::to_string(options_.num_blocks) + " of " + std::to_string(options_.block_size) + ", budget " +
           std::to_string(options_.max_num_batched_tokens) + ", seqs " + std::to_string(options_.max_num_seqs) +
           ", threshold " + std::to_string(options_.long_prefill_token_threshold) + ", chunked " +
           std::to_string(options_.enable_chunked_prefill) + ", priority " +
           std::to_string(options_.policy == SchedulingPolicy::kPriority) + ", max_model_len " +
           std::to_string(options_.max_model_len);
  }

  std::mt19937_64 random_;
  SchedulerOptions options_;
  SchedulerHarness harness_;
  ReferenceScheduler reference_;
  std::vector<RequestId> alive_;
  RequestId last_id_ = 0;
  bool busy_ = true;
  int64_t num_steps_ = 0;
  int64_t num_preemptions_ = 0;
  int64_t num_hit_tokens_ = 0;
  int64_t num_finished_ = 0;
  int64_t num_rejected_ = 0;
  int64_t num_scheduled_ = 0;
  int64_t num_rolled_back_ = 0;
  bool rolls_back_ = Chance(50);
  bool has_interactive_ = Chance(50);
};

BlockHash ConstantHash(const BlockHash&, std::span<const int32_t>, std::string_view) { return {}; }

void RunEpisodes(uint64_t first_seed, int64_t num_steps, BlockHashFunction hash_function) {
  int64_t steps = 0, preemptions = 0, hits = 0, finished = 0, rejected = 0, scheduled = 0, rolled_back = 0;
  for (uint64_t seed = first_seed; steps < num_steps; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Episode episode(seed, hash_function);
    episode.Run(500);
    if (testing::Test::HasFailure()) return;
    steps += episode.num_steps();
    preemptions += episode.num_preemptions();
    hits += episode.num_hit_tokens();
    finished += episode.num_finished();
    rejected += episode.num_rejected();
    scheduled += episode.num_scheduled();
    rolled_back += episode.num_rolled_back();
  }
  // The run must have covered the difficult cases.
  EXPECT_GT(scheduled, steps);
  EXPECT_GT(preemptions, steps / 200);
  EXPECT_GT(hits, steps / 10);
  EXPECT_GT(finished, steps / 50);
  EXPECT_GT(rejected, 0);
  EXPECT_GT(rolled_back, steps / 50);
  std::printf("%lld steps, %lld scheduled, %lld finished, %lld rejected, %lld preemptions, %lld cached tokens\n",
              static_cast<long long>(steps), static_cast<long long>(scheduled), static_cast<long long>(finished),
              static_cast<long long>(rejected), static_cast<long long>(preemptions), static_cast<long long>(hits));
}

TEST(ReferenceSchedulerTest, SchedulersAgreeOverRandomSteps) { RunEpisodes(1, NumSteps(), &HashBlockTokens); }

TEST(ReferenceSchedulerTest, SchedulersAgreeEvenIfAllHashesCollide) {
  RunEpisodes(1'000'000, NumSteps() / 10, &ConstantHash);
}

TEST(ReferenceSchedulerTest, ReplaysOfRandomStepsReachTheSameDecisions) {
  int64_t num_steps = 0, num_preemptions = 0, num_cached_tokens = 0;
  for (uint64_t seed = 1; num_steps < NumSteps() / 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TempDirectory directory;
    TraceRecorder recorder(directory.path() + "/trace");
    Episode episode(seed, &HashBlockTokens);
    episode.RecordTo(&recorder);
    episode.Run(500);
    recorder.End();
    std::ifstream file(recorder.path(), std::ios::binary);
    TraceReader reader([&file](char* data, size_t size) {
      file.read(data, static_cast<std::streamsize>(size));
      return static_cast<size_t>(file.gcount());
    });
    const ReplayResult result = ReplayTrace(reader);
    ASSERT_EQ(result.difference, "");
    ASSERT_TRUE(result.has_end);
    // The last step of an episode only sends the finished requests.
    ASSERT_EQ(result.num_steps, episode.num_steps() + 1);
    num_steps += result.num_steps;
    num_preemptions += result.num_preemptions;
    num_cached_tokens += result.num_cached_tokens;
  }
  EXPECT_GT(num_preemptions, num_steps / 200);
  EXPECT_GT(num_cached_tokens, num_steps / 10);
}

}  // namespace
}  // namespace vllm
