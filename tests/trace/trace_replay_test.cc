// Records engine runs with a fake model and replays them. ReferenceSchedulerTest in tests/sched replays many more
// random steps of the scheduler alone.
#include "engine/trace/trace_replay.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/config/errors.h"
#include "engine/frontend/llm_engine.h"
#include "tests/support/draft_proposers.h"
#include "tests/trace/trace_test_util.h"

namespace vllm {
namespace {

using testing::FakeConfig;
using testing::FakeExecutorFactory;
using testing::FakeModel;
using testing::FakeRequest;

// An engine run with a random configuration and random requests, aborts, cancelled steps and failures.
class RandomRun {
 public:
  explicit RandomRun(uint32_t seed) : seed_(seed) {
    std::mt19937 random(seed);
    config_ = FakeConfig();
    config_.scheduler.policy = Pick(random, 0, 1) == 0 ? SchedulingPolicy::kFcfs : SchedulingPolicy::kPriority;
    config_.scheduler.max_num_batched_tokens = Pick(random, 1, 80);
    config_.scheduler.long_prefill_token_threshold = Pick(random, 0, 1) * Pick(random, 1, 40);
    config_.scheduler.scheduler_reserve_full_isl = Pick(random, 0, 1) == 1;
    config_.cache.enable_prefix_caching = Pick(random, 0, 3) > 0;
    model_.group_windows.assign(static_cast<size_t>(Pick(random, 0, 2)), 0);
    for (int64_t n = Pick(random, model_.group_windows.empty() ? 1 : 0, 2); n > 0; --n) {
      model_.group_windows.push_back(Pick(random, 2, 90));
    }
    config_.cache.num_blocks_override = static_cast<int64_t>(model_.group_windows.size()) * Pick(random, 16, 60);
    if (Pick(random, 0, 1) == 1) {
      model_.cancels = [seed](int64_t step, const SchedulerOutput&) -> int64_t {
        return (static_cast<uint64_t>(step) * 2654435761u + seed) % 7 == 0 ? 0 : -1;
      };
    }
    model_.fails = [](const EngineCoreRequest& request, const std::vector<int32_t>& tokens) {
      return request.request_id % 9 == 0 && tokens.size() % 17 == 0;
    };
    for (RequestId id = 1; id <= 25; ++id) requests_.push_back(RandomRequest(random, id));
    if (seed % 2 == 0) return;
    config_.speculative = testing_support::VerifyAll(1 + seed % 12);
    for (const EngineCoreRequestPtr& request : requests_) {
      recorded_->Add(request->prompt_token_ids, testing::FakeGenerate(*request, 60, config_.model.vocab_size));
    }
  }

  // Runs the engine, and records it unless `recorder` is null.
  Tokens Run(TraceRecorder* recorder) const {
    EngineCore engine_core(
        config_,
        testing_support::WithDrafts(FakeExecutorFactory(model_), testing_support::DraftKind::kMixed, recorded_, seed_),
        nullptr, recorder);
    std::mt19937 random(seed_);
    bool paused = false;
    for (size_t i = 0; i < 12; ++i) engine_core.AddRequest(requests_[i]);
    size_t num_added = 12;
    Tokens tokens = RunTraced(engine_core, [&](int64_t) {
      if (num_added < requests_.size() && Pick(random, 0, 2) == 0) engine_core.AddRequest(requests_[num_added++]);
      const RequestId id = static_cast<RequestId>(Pick(random, 1, 25));
      if (Pick(random, 0, 60) == 0) engine_core.AbortRequests(std::span(&id, 1));
      if (Pick(random, 0, 60) == 0) engine_core.ResetPrefixCache();
      if (Pick(random, 0, 20) == 0) engine_core.SetAdmissionPaused(paused = !paused);
    });
    engine_core.SetAdmissionPaused(false);
    for (const auto& [id, rest] : RunTraced(engine_core)) tokens[id].insert(tokens[id].end(), rest.begin(), rest.end());
    EXPECT_TRUE(engine_core.ResetPrefixCache());
    return tokens;
  }

 private:
  static int64_t Pick(std::mt19937& random, int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }

  EngineCoreRequestPtr RandomRequest(std::mt19937& random, RequestId id) const {
    auto request = std::make_shared<EngineCoreRequest>();
    request->request_id = id;
    request->interactive = Pick(random, 0, 7) == 0;
    request->prompt_token_ids.assign(static_cast<size_t>(Pick(random, 0, 3) * 16), 5);
    for (int64_t n = Pick(random, 1, 60); n > 0; --n) {
      request->prompt_token_ids.push_back(static_cast<int32_t>(Pick(random, 0, 258)));
    }
    SamplingParams& params = request->sampling_params;
    params.seed = id % 5;
    params.max_tokens = Pick(random, 10, 60);
    params.min_tokens = Pick(random, 0, 1) * Pick(random, 0, 9);
    params.eos_token_id = 7;
    params.ignore_eos = Pick(random, 0, 3) == 0;
    if (Pick(random, 0, 1) == 0) params.stop_token_ids = {7, 40, 90, 140};
    if (Pick(random, 0, 5) == 0) params.prompt_logprobs = 1;
    for (int64_t n = Pick(random, 0, 2) * Pick(random, 0, 4); n > 0; --n) {
      request->prior_output_token_ids.push_back(static_cast<int32_t>(Pick(random, 0, 258)));
    }
    if (Pick(random, 0, 3) == 0) request->cache_salt = "salt";
    request->priority = Pick(random, -1, 1);
    request->arrival_time = SteadyTime(std::chrono::milliseconds(id / 2));
    return request;
  }

  uint32_t seed_;
  VllmConfig config_;
  FakeModel model_;
  std::vector<EngineCoreRequestPtr> requests_;
  std::shared_ptr<testing_support::RecordedOutputs> recorded_ = std::make_shared<testing_support::RecordedOutputs>();
};

TEST(TraceReplayTest, ReplaysOfRandomRunsReachTheSameDecisions) {
  const TempDirectory directory;
  int64_t num_preemptions = 0, num_cached_tokens = 0;
  std::map<SampledEnd, int64_t> num_ends;
  std::map<TraceRecordType, int64_t> num_records;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    TraceRecorder recorder(directory.path() + "/" + std::to_string(seed));
    RandomRun(seed).Run(&recorder);
    ASSERT_FALSE(recorder.Failed());
    const std::string bytes = ReadBytes(recorder.path());
    const ReplayResult result = ReplayOf(bytes);
    ASSERT_EQ(result.difference, "");
    ASSERT_TRUE(result.has_end);
    num_preemptions += result.num_preemptions;
    num_cached_tokens += result.num_cached_tokens;
    for (const TraceRecord& record : RecordsOf(bytes)) {
      ++num_records[record.type];
      if (record.type != TraceRecordType::kUpdate) continue;
      for (const TraceSampled& sampled : record.update.sampled) ++num_ends[sampled.end];
    }
  }
  // The runs must have covered everything that a trace can contain.
  EXPECT_GT(num_preemptions, 0);
  EXPECT_GT(num_cached_tokens, 0);
  EXPECT_EQ(num_ends.size(), 5u);
  EXPECT_EQ(num_records.size(), 10u);
}

TEST(TraceReplayTest, RecordingChangesNoToken) {
  const TempDirectory directory;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    TraceRecorder recorder(directory.path() + "/" + std::to_string(seed));
    const RandomRun run(seed);
    EXPECT_EQ(run.Run(&recorder), run.Run(nullptr)) << seed;
  }
}

// Changes one decision of every step of a trace with `change`, which returns false if it does not apply to a record,
// and expects the replay to name that step.
void ExpectDetected(const std::function<bool(TraceRecord&)>& change) {
  const std::vector<TraceRecord> records = RecordsOf(BusyTrace());
  int64_t step = 0;
  int64_t num_changes = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    step += records[i].type == TraceRecordType::kStep;
    std::vector<TraceRecord> changed = records;
    if (!change(changed[i])) continue;
    ++num_changes;
    const std::string expected = "at step " + std::to_string(step) + ": ";
    const std::string difference = ReplayOf(BytesOf(changed)).difference;
    ASSERT_EQ(difference.substr(0, expected.size()), expected) << difference;
  }
  EXPECT_GT(num_changes, 1);
}

TEST(TraceReplayTest, ChangedNumberOfTokensIsDetected) {
  ExpectDetected([](TraceRecord& record) {
    if (record.type != TraceRecordType::kStep || record.step.scheduled.empty()) return false;
    ++record.step.scheduled.back().num_tokens;
    return true;
  });
}

TEST(TraceReplayTest, ChangedRequestIsDetected) {
  ExpectDetected([](TraceRecord& record) {
    if (record.type != TraceRecordType::kStep || record.step.scheduled.empty()) return false;
    record.step.scheduled.front().request_id += 100;
    return true;
  });
}

TEST(TraceReplayTest, ChangedBlockIsDetected) {
  ExpectDetected([](TraceRecord& record) {
    if (record.type != TraceRecordType::kStep || record.step.block_ids.empty()) return false;
    ++record.step.block_ids.back();
    return true;
  });
}

TEST(TraceReplayTest, ChangedPreemptionIsDetected) {
  ExpectDetected([](TraceRecord& record) {
    if (record.type != TraceRecordType::kStep || record.step.preempted_req_ids.empty()) return false;
    record.step.preempted_req_ids.clear();
    return true;
  });
}

TEST(TraceReplayTest, ChangedPrefixHitIsDetected) {
  ExpectDetected([](TraceRecord& record) {
    if (record.type != TraceRecordType::kStep || record.step.scheduled.empty()) return false;
    if (record.step.scheduled.back().kind == ScheduledKind::kRunning) return false;
    record.step.scheduled.back().num_computed_tokens += 16;
    return true;
  });
}

TEST(TraceReplayTest, ChangedNumberOfBlocksInUseIsDetected) {
  ExpectDetected([](TraceRecord& record) {
    if (record.type != TraceRecordType::kStep) return false;
    ++record.step.num_blocks_in_use;
    return true;
  });
}

TEST(TraceReplayTest, ChangedEndByLengthIsDetected) {
  ExpectDetected([](TraceRecord& record) {
    if (record.type != TraceRecordType::kUpdate || record.update.sampled.empty()) return false;
    if (record.update.sampled[0].end != SampledEnd::kContinues || !record.update.tags.empty()) return false;
    record.update.sampled[0].end = SampledEnd::kLength;
    return true;
  });
}

TEST(TraceReplayTest, ChangedTagOfAPromptIsDetected) {
  std::vector<TraceRecord> records = RecordsOf(BusyTrace());
  // The second request then no longer shares its first block.
  ASSERT_EQ(records[2].type, TraceRecordType::kAdd);
  ++records[2].add.tags[0];
  EXPECT_NE(ReplayOf(BytesOf(records)).difference, "");
}

TEST(TraceReplayTest, ChangedRejectionIsDetected) {
  std::vector<TraceRecord> records = RecordsOf(BusyTrace());
  ASSERT_EQ(records[2].type, TraceRecordType::kAdd);
  records[2].add.accepted = false;
  EXPECT_EQ(ReplayOf(BytesOf(records)).difference, "before step 1: request 2: recorded rejected, replayed accepted");
}

TEST(TraceReplayTest, ImpossibleRecordsAreErrors) {
  const std::vector<TraceRecord> records = RecordsOf(BusyTrace());
  const auto index_of = [&](TraceRecordType type) {
    return std::find_if(records.begin(), records.end(), [&](const TraceRecord& r) { return r.type == type; }) -
           records.begin();
  };
  const auto why = [](const std::vector<TraceRecord>& changed) {
    return MessageOf<ModelError>([&] { ReplayOf(BytesOf(changed)); });
  };
  std::vector<TraceRecord> changed = records;
  changed.erase(changed.begin() + index_of(TraceRecordType::kUpdate));
  EXPECT_EQ(why(changed), "step 1: has no result");
  changed = records;
  changed.insert(changed.begin() + 1, records[static_cast<size_t>(index_of(TraceRecordType::kUpdate))]);
  EXPECT_EQ(why(changed), "step 0: no step runs that could be updated");
  changed = records;
  changed[static_cast<size_t>(index_of(TraceRecordType::kUpdate))].update.sampled.push_back({99, 1, {}, 0});
  EXPECT_EQ(why(changed), "step 1: request 99: has a result but was not scheduled");
  changed = records;
  changed[1].add.tags.pop_back();
  EXPECT_EQ(why(changed), "request 1: wrong number of block tags");
  changed = records;
  changed.push_back(records.back());
  EXPECT_EQ(why(changed), "a record follows the end of the engine");
  changed = records;
  changed.push_back(records.front());
  EXPECT_EQ(why(changed), "record " + std::to_string(changed.size()) + ": a second configuration");
}

TEST(TraceReplayTest, MemoryIsLimited) {
  std::vector<TraceRecord> records = RecordsOf(BusyTrace());
  records[0].begin.cache.num_blocks = int64_t{1} << 30;
  EXPECT_THROW(ReplayOf(BytesOf(records)), ResourceError);
  records[0].begin.cache.num_blocks = 100;
  records[0].begin.cache.enable_prefix_caching = false;
  records[1].add.num_prompt_tokens = int64_t{1} << 30;
  records[1].add.tags.clear();
  EXPECT_THROW(ReplayOf(BytesOf(records)), ResourceError);
}

}  // namespace
}  // namespace vllm
