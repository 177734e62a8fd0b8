// SchedulerHarness: a Scheduler with fake workers, for tests. The fake workers sample the tokens that next_token
// returns and track the same state as real workers (tokens, block tables). The test fails if a SchedulerOutput
// contradicts that state. Call it from one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/sched/scheduler.h"

namespace vllm {

class TraceRecorder;

struct SchedulerOptions {
  int64_t num_blocks = 10000;
  int64_t block_size = 16;
  bool enable_prefix_caching = true;
  int64_t max_num_batched_tokens = 8192;
  int64_t max_num_seqs = 16;
  int64_t max_loras = 1;
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
  bool interactive = false;
  int32_t lora_slot = -1;
  bool pooling = false;  // the harness gives it the vector {1}
  std::function<void(SamplingParams&)> edit = {};
};

EngineCoreRequestPtr MakeRequest(RequestId id, std::vector<int32_t> prompt_token_ids, const RequestSpec& options = {});
// Returns `count` copies of `token_id`.
std::vector<int32_t> Repeat(int32_t token_id, int64_t count);
// Returns first, first + 1, ..., first + count - 1.
std::vector<int32_t> Iota(int32_t first, int64_t count);

class SchedulerHarness {
 public:
  explicit SchedulerHarness(const SchedulerOptions& options = {});

  // Adds a request, and fails the test if it is rejected. The second form makes a prompt that repeats the token `id`.
  void Add(const EngineCoreRequestPtr& request);
  void Add(RequestId id, int64_t num_prompt_tokens, const RequestSpec& options = {});
  // Adds a request. Returns false and sets `rejection_reason` if it is rejected.
  bool TryAdd(const EngineCoreRequestPtr& request, std::string* rejection_reason);
  void Abort(RequestId id);
  bool ResetPrefixCache();

  // Schedules a step and checks the output against the workers' state.
  const SchedulerOutput& Schedule();
  // Samples for each scheduled request whose tokens are all computed, and updates the scheduler.
  void Update();
  // Rolls back the step of the last Schedule.
  void RollBack();
  const SchedulerOutput& Step();
  // Steps until all requests are finished, and checks that no blocks or worker states are left. Fails the test if
  // this takes more than max_steps steps, or if a step makes no progress.
  void RunToEnd(int64_t max_steps = 100000);

  // Records all later calls of this class. `recorder` is borrowed.
  void RecordTo(TraceRecorder* recorder);

  // Returns the number of tokens scheduled for the request in the last Schedule.
  int64_t Scheduled(RequestId id) const;
  std::vector<int32_t> BlockIds(RequestId id, size_t group = 0) const;

  Scheduler scheduler;
  std::function<int32_t(RequestId id, int64_t position)> next_token;
  std::function<void(ModelRunnerOutput&)> edit_output;  // called before the scheduler receives the workers' output
  const SchedulerOutput* output = nullptr;              // from the last Schedule
  ModelRunnerOutput runner_output;
  EngineCoreOutputs outputs;  // from the last Update

  // The outputs of a request so far, accumulated.
  struct Result {
    FinishReason reason = FinishReason::kNone;
    std::vector<int32_t> token_ids;
    int64_t num_cached_tokens = 0;
    int64_t num_preemptions = 0;
    std::optional<int32_t> stop_token_id;
    std::string error;
  };
  std::map<RequestId, Result> results;

 private:
  struct WorkerState {
    EngineCoreRequestPtr request;
    std::vector<int32_t> output_token_ids;
    std::vector<std::vector<int32_t>> block_ids;  // [num_groups]
    int64_t num_computed_tokens = 0;
    bool preempted = false;
  };
  void UpdateWorkers();
  void AddBlocks(std::span<const int32_t> block_ids, WorkerState& view) const;

  SchedulerOptions options_;
  std::map<RequestId, WorkerState> worker_states_;
  TraceRecorder* recorder_ = nullptr;
};

}  // namespace vllm
