// Scheduler: decides each step which requests compute how many tokens, and turns what was sampled into outputs. vLLM's
// V1 scheduler: there is no prefill phase and no decode phase; each request's num_computed_tokens runs after its number
// of tokens. Owned by EngineCore; engine thread only; holds no locks.
//
// A step is Schedule, then the ranks, then UpdateFromOutput; or RollBackStep instead, when the ranks did not finish.
// AddRequest, FinishRequests and ResetPrefixCache may come between any two of them.
//
// Invariant 1: every unfinished request is in `waiting` (no blocks) or in `running` (with blocks), never in both.
// Invariant 2: whenever something is unfinished, Schedule gives at least one token to compute.
// Invariant 3: no decode step allocates memory once its vectors have grown.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/kv_cache/kv_cache_manager.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/request/request.h"
#include "engine/request/scheduler_stats.h"
#include "engine/sched/model_runner_output.h"
#include "engine/sched/request_queue.h"
#include "engine/sched/scheduler_output.h"

namespace vllm {

class Scheduler {
 public:
  // REQUIRES: cache.num_blocks is set; all sizes positive.
  Scheduler(const SchedulerConfig& config, const CacheConfig& cache, int64_t max_model_len,
            BlockHashFunction hash_function = &HashBlockTokens);
  ~Scheduler();

  // False, with the reason, for a request that could never finish its prompt: no room for one token after the prompt in
  // max_model_len or in all KV blocks together, or a prompt above max_num_batched_tokens while prompts may not be
  // chunked. An id that an unfinished request has is refused as well.
  bool AddRequest(EngineCoreRequestPtr request, std::string* refusal);

  // Ends requests from outside (an abort, or a stop string found by the front end). They get no further output, not
  // even for a step that is under way. Unknown ids are ignored.
  void FinishRequests(std::span<const RequestId> ids, FinishReason reason);

  // The next step's work, valid until the next call. num_computed_tokens is advanced at once. May be empty but for
  // finished_req_ids.
  const SchedulerOutput& Schedule();

  // Takes in what the step gave: appends tokens, looks for stops, and adds an entry to `outputs` for each request with
  // news (new tokens or an end). Entries already there are kept. Requests that ended meanwhile are ignored.
  void UpdateFromOutput(const ModelRunnerOutput& model_runner_output, EngineCoreOutputs& outputs);

  // Takes the last Schedule back, for a step that the ranks began and did not finish: they know its requests, tokens
  // and blocks, but the KV of its tokens is undefined. Requests that were running keep their blocks and compute the
  // same tokens again; those that this step admitted go back to the front of the waiting ones; nothing that the step
  // would have computed stays in the prefix cache. Preemptions stand.
  void RollBackStep();

  bool HasUnfinishedRequests() const { return !requests_.empty(); }
  // Whether ranks still have to be told to forget a request.
  bool HasFinishedRequests() const { return !finished_req_ids_.empty(); }
  int64_t num_running() const { return static_cast<int64_t>(running_.size()); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_->size()); }
  SchedulerStats MakeStats() const;

  // False, and nothing done, while any request has blocks.
  bool ResetPrefixCache() { return kv_cache_.ResetPrefixCache(); }

  // For tests.
  const KVCacheManager& kv_cache() const { return kv_cache_; }
  std::span<Request* const> running() const { return running_; }
  const Request* FindRequest(RequestId id) const;
  // Empty, or which invariant is broken. O(everything).
  std::string CheckIntegrity() const;

 private:
  struct ScheduledRequest {
    Request* request = nullptr;
    int64_t num_tokens = 0;
    RequestStatus status_before = RequestStatus::kRunning;
  };

  void ScheduleRunning(int64_t& token_budget);
  void ScheduleWaiting(int64_t& token_budget);
  // Takes the policy's victim out of the running requests and puts it back to the waiting ones.
  Request* PreemptOne(size_t& request_index, int64_t& token_budget);
  void BuildOutput();
  void MakeNewRequestData(Request& request);
  void MakeCachedRequestData(const Request& request, bool resumed);

  // Appends sampled tokens until one stops the request; returns how many were taken.
  size_t AppendTokens(Request& request, std::span<const int32_t> token_ids);
  EngineCoreOutput& AddOutput(Request& request, size_t num_new_tokens, const Logprobs* logprobs,
                              EngineCoreOutputs& outputs);
  // Frees what a finished request holds and has the ranks told; the object lives on.
  void Release(Request& request);
  // Drops the finished among the running requests.
  void EraseFinished();
  Request* Find(RequestId id) const;

  const SchedulerConfig config_;
  const int64_t max_model_len_;
  const int64_t max_tokens_that_fit_;  // into the KV blocks, of one request alone
  const int64_t max_num_tokens_;       // max_model_len, or one more than the KV blocks hold
  KVCacheManager kv_cache_;
  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  std::unique_ptr<RequestQueue> waiting_;
  std::vector<Request*> running_;
  std::vector<RequestId> finished_req_ids_;
  std::vector<RequestId> rolled_back_req_ids_;  // lost their blocks in RollBackStep; the ranks do not know yet

  std::vector<ScheduledRequest> scheduled_;
  SchedulerOutput output_;
  SteadyTime now_{};
  int64_t step_ = 0;
  int64_t num_preemptions_ = 0;
  int64_t num_computed_tokens_ = 0;
};

}  // namespace vllm
