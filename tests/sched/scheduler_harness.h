// SchedulerHarness: a Scheduler with a stand-in for the ranks, for tests. The stand-in samples what NextToken says and
// keeps what real ranks would know (tokens, block tables), failing the test when a SchedulerOutput contradicts it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/sched/scheduler.h"

namespace vllm {

struct SchedulerOptions {
  int64_t num_blocks = 10000;
  int64_t block_size = 16;
  bool enable_prefix_caching = true;
  int64_t max_num_batched_tokens = 8192;
  int64_t max_num_seqs = 16;
  int64_t long_prefill_token_threshold = 0;
  bool enable_chunked_prefill = true;
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  bool scheduler_reserve_full_isl = true;
  int64_t max_model_len = 8192;
  BlockHashFunction hash_function = &HashBlockTokens;
  std::vector<int64_t> group_windows = {0};

  SchedulerConfig Config() const;
  CacheConfig Cache() const;
};

struct RequestSpec {
  int64_t max_tokens = 16;
  bool ignore_eos = true;
  int64_t priority = 0;
  int64_t arrival_ms = 0;
  std::string cache_salt = {};
  std::function<void(SamplingParams&)> edit = {};
};

EngineCoreRequestPtr MakeRequest(RequestId id, std::vector<int32_t> prompt_token_ids, const RequestSpec& options = {});
// `count` times `token_id`.
std::vector<int32_t> Repeat(int32_t token_id, int64_t count);
// first, first + 1, ...
std::vector<int32_t> Iota(int32_t first, int64_t count);

class SchedulerHarness {
 public:
  explicit SchedulerHarness(const SchedulerOptions& options = {});

  // Expects the request to be taken.
  void Add(EngineCoreRequestPtr request);
  void Add(RequestId id, int64_t num_prompt_tokens, const RequestSpec& options = {});
  void Abort(RequestId id);

  // Schedules and checks the output against what the ranks know.
  const SchedulerOutput& Schedule();
  // Samples for all requests of the last Schedule and lets the scheduler know.
  void Update();
  // The ranks did not finish the last Schedule's step.
  void RollBack();
  const SchedulerOutput& Step();
  // Steps until nothing is unfinished; fails the test after max_steps.
  void RunToEnd(int64_t max_steps = 100000);

  // Tokens scheduled for the request in the last Schedule; 0 when it was not.
  int64_t Scheduled(RequestId id) const;
  std::vector<int32_t> BlockIds(RequestId id, size_t group = 0) const;

  Scheduler scheduler;
  std::function<int32_t(RequestId id, int64_t position)> next_token;
  std::function<void(ModelRunnerOutput&)> edit_output;  // before the scheduler sees it
  const SchedulerOutput* output = nullptr;              // of the last Schedule
  ModelRunnerOutput runner_output;
  EngineCoreOutputs outputs;  // of the last Update

  struct Finished {
    FinishReason reason = FinishReason::kNone;
    std::vector<int32_t> token_ids;
    int64_t num_cached_tokens = 0;
    int64_t num_preemptions = 0;
    std::optional<int32_t> stop_token_id;
    std::string error;
  };
  std::map<RequestId, Finished> results;  // tokens so far, and the end when there was one

 private:
  struct RankView {
    EngineCoreRequestPtr request;
    std::vector<int32_t> output_token_ids;
    std::vector<std::vector<int32_t>> block_ids;  // [num_groups]
    int64_t num_computed_tokens = 0;
    bool preempted = false;
  };
  void TellRanks();
  void AddBlocks(std::span<const int32_t> block_ids, RankView& view) const;

  SchedulerOptions options_;
  std::map<RequestId, RankView> ranks_;
};

}  // namespace vllm
