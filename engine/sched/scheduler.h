// Scheduler: decides in each step which requests compute how many tokens, and turns sampled tokens into outputs. As in
// vLLM V1, there is no prefill or decode phase: num_computed_tokens catches up with num_tokens. A step is Schedule,
// then execution by the workers, then UpdateFromOutput, or RollBackStep if the workers did not finish. Other members
// may be called between any two of these calls. Owned by EngineCore; engine thread only.
//
// Invariant 1: every unfinished request is in waiting_ or loading_ (without blocks), or in running_ (with blocks).
// Invariant 2: if any request is unfinished, not IsHeld() and num_loading() is 0, Schedule schedules at least one
// token, unless it starts to load KV.
// Invariant 3: a decode step without beam search does not allocate once the vectors have grown.
//
// A request with beam search is a BeamGroup of Requests, one for each live beam, which is preempted as a whole. The
// group counts as beam_width sequences for max_num_seqs.
//
// Running requests use at most max_loras LoRA adapters. As in vLLM, a waiting request that needs another one is skipped
// and does not block those behind it, but only until kMaxOvertakenPerSeq * max_num_seqs requests have overtaken it.
#pragma once

#include <cstdint>
#include <map>
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
#include "engine/sched/beam_group.h"
#include "engine/sched/model_runner_output.h"
#include "engine/sched/request_queue.h"
#include "engine/sched/scheduler_output.h"

namespace vllm {

class KVConnector;

class Scheduler {
 public:
  // Limits the tokens of a step that an interactive request shares with others, so that the user does not wait long for
  // its next token. It is raised to the number of running requests, which each need one token.
  static constexpr int64_t kSharedStepTokens = 256;
  // After a step with other requests, interactive requests run alone for one step per kTokensPerStepAlone tokens of the
  // others, at most kMaxStepsAlone. A step for one token takes a fraction of the time of a step for many.
  static constexpr int64_t kTokensPerStepAlone = 64;
  static constexpr int64_t kMaxStepsAlone = 2;
  static constexpr int64_t kMaxOvertakenPerSeq = 4;
  // Limits the tokens of a step in which an encoder computes several texts. With more, it is slower, because the
  // activations of the step no longer fit in the L2 cache. A longer text is computed alone.
  static constexpr int64_t kEncoderStepTokens = 512;

  // REQUIRES: cache.num_blocks is set; all sizes are positive.
  Scheduler(const SchedulerConfig& config, const CacheConfig& cache, int64_t max_model_len,
            BlockHashFunction hash_function = &HashBlockTokens);
  ~Scheduler();

  // Loads the KV of prompts from this store, and saves that of finished requests in it. Borrowed. Call this once,
  // before the first request.
  void SetKVConnector(KVConnector* connector);
  // Publishes the KV that has been loaded since the last call, and lets its requests be admitted. Call this before
  // Schedule, not between Schedule and UpdateFromOutput.
  void FinishLoads();

  // Queues a request. Returns false and sets `rejection_reason` (may be null) if the request could never finish its
  // prompt: max_model_len or all KV blocks together are too small for the prompt and, unless the request is for
  // pooling, one more token, or, without
  // chunked prefill, the prompt's first chunk exceeds max_num_batched_tokens. Beam search needs room for beam_width
  // sequences. Also rejects empty prompts and the ids of unfinished requests.
  bool AddRequest(EngineCoreRequestPtr request, std::string* rejection_reason);

  // Ends requests after an abort, or because the front end found a stop string. They get no further output, even from a
  // step in progress. The id of a beam stands for all beams of its request. Ignores unknown ids. REQUIRES: reason is
  // not kNone.
  void FinishRequests(std::span<const RequestId> ids, FinishReason reason);

  // Ends a request like FinishRequests with kAbort, and adds its final output to `outputs`. Ignores unknown ids.
  void AbortWithOutput(RequestId id, EngineCoreOutputs& outputs);

  // While admission is paused, Schedule admits no request that has never run, except interactive ones. Preempted
  // requests resume.
  void SetAdmissionPaused(bool paused) { admission_paused_ = paused; }
  bool admission_paused() const { return admission_paused_; }
  // Returns true if requests are unfinished, but none can be scheduled until admission continues.
  bool IsHeld() const;

  // Returns the next step's work, valid until the next call. Advances num_computed_tokens immediately. If nothing is
  // scheduled, the result may still contain finished_req_ids.
  const SchedulerOutput& Schedule();

  // Sets the drafts that the next step with the request verifies, at most MaxDrafts(request) of them, and replaces
  // those set before. Ignores unknown ids, requests that do not run, and empty drafts. A step verifies fewer drafts if
  // its tokens or free blocks do not suffice. A request that is preempted, or whose step is rolled back, loses them.
  void SetDrafts(RequestId id, std::span<const int32_t> token_ids, SpeculativeMethod method);
  // Returns how many drafts could become tokens of the request, besides the token after them.
  int64_t MaxDrafts(const Request& request) const;

  // Processes a step's results: appends tokens, checks for stops, and adds an entry to `outputs` for each request that
  // has new tokens or ended. Keeps existing entries of `outputs`. Ignores requests that ended during the step. A
  // request in model_runner_output.failed ends with FinishReason::kError, and the blocks that it published are removed
  // from the prefix cache.
  void UpdateFromOutput(const ModelRunnerOutput& model_runner_output, EngineCoreOutputs& outputs);

  // Undoes the last Schedule, for a step that the workers started but did not finish. The workers have received the
  // step's requests, tokens and blocks, but the KV of its tokens is undefined. Requests that were already running keep
  // their blocks and compute the same tokens again. Requests that the step admitted lose their blocks and go back to
  // the waiting queue. Blocks that the step should have filled are removed from the prefix cache. Preemptions are not
  // undone.
  void RollBackStep();

  bool HasUnfinishedRequests() const { return !requests_.empty(); }
  // Returns true if the next step's finished_req_ids will not be empty.
  bool HasFinishedRequests() const { return !finished_req_ids_.empty(); }
  int64_t num_running() const { return static_cast<int64_t>(running_.size()); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_->size()) + num_loading(); }
  // Returns the number of waiting requests whose KV is being loaded.
  int64_t num_loading() const { return static_cast<int64_t>(loading_.size()); }
  SchedulerStats MakeStats() const;
  const SchedulerConfig& config() const { return config_; }
  // Appends the first waiting requests in order, at most `max`. Those whose KV is being loaded come first.
  void AppendWaiting(size_t max, std::vector<const Request*>& requests) const;

  // Empties the prefix cache. Returns false and does nothing if any request has blocks.
  bool ResetPrefixCache() { return kv_cache_.ResetPrefixCache(); }

  const KVCacheManager& kv_cache() const { return kv_cache_; }
  std::span<Request* const> running() const { return running_; }
  // For tests.
  const Request* FindRequest(RequestId id) const;
  // Returns the first broken invariant, or an empty string. Scans all requests, blocks and prefixes.
  std::string CheckIntegrity() const;

 private:
  struct ScheduledRequest {
    Request* request = nullptr;
    int64_t num_tokens = 0;  // with the drafts
    RequestStatus status_before = RequestStatus::kRunning;
  };

  // Schedules the running requests that are interactive, or those that are not.
  void ScheduleRunning(int64_t& token_budget, bool interactive);
  // Admits waiting requests in order while they fit; an interactive one preempts others to fit. With
  // `interactive_only`, admits no others.
  void ScheduleWaiting(int64_t& token_budget, bool interactive_only);
  // The loop of ScheduleWaiting, which may leave requests in skipped_.
  void AdmitWaiting(int64_t& token_budget, bool interactive_only);
  // Starts to load the KV that follows the hit, and moves the request from waiting_ to loading_. Returns false if there
  // is nothing to load.
  bool StartLoad(Request& request, const ComputedBlocks& computed);
  // Saves the KV of a request that ends or is preempted. Call this before its blocks are freed. REQUIRES: the KV of its
  // num_computed_tokens is computed.
  void SaveBlocks(Request& request);
  void Save(Request& request, std::span<const SequenceBlock> blocks);
  // Admits the first waiting request. Returns false if no blocks are available for it.
  bool AdmitFirst(int64_t num_new_tokens, const ComputedBlocks& computed);
  // Returns true if an interactive request has not computed its prompt, or has to compute it again.
  bool HasInteractivePrefill() const;
  // Returns how many drafts of a running request this step can verify after num_new_tokens other tokens of it, so that
  // a token remains for each of the num_later requests after it.
  int64_t NumDraftsThatFit(const Request& request, int64_t num_new_tokens, int64_t token_budget,
                           int64_t num_later) const;
  // Preempts the running request that the policy selects, or all beams of its group, an interactive one only if no
  // other is running: moves it to the waiting queue. If the request precedes running_[request_index], adjusts the
  // index. If the request was scheduled in this step, returns its tokens to the budget.
  void PreemptOne(size_t& request_index, int64_t& token_budget);
  // Removes a request from running_ and from the step, and frees its blocks. Adjusts the index and the budget.
  void Evict(Request& victim, size_t& request_index, int64_t& token_budget);
  bool IsRunning(RequestId id) const;
  void BuildOutput();
  // Plans the checkpoints of the recurrent state of a request that the step computes num_tokens tokens of, and tells
  // the workers. was_admitted: the request was not running before this step.
  void PlanCheckpoints(Request& request, int64_t num_tokens, bool was_admitted);
  void MakeNewRequestData(Request& request);
  // Returns true if the step computes more of the tokens that the request begins with than its hit `computed` has. The
  // step then saves the recurrent state after these tokens, so that the request can continue from it in the next step.
  bool WaitsForState(const Request& request, const ComputedBlocks& computed);
  void MakeCachedRequestData(const Request& request, bool resumed);

  // Ends a request whose prompt is computed, and adds its output.
  // Returns true if this step has enough texts of an encoder, so that one of num_new_tokens waits for the next step.
  bool EndsEncoderStep(const Request& request, int64_t num_new_tokens, int64_t token_budget) const;
  void FinishPooling(RequestId id, const std::vector<float>& pooled, EngineCoreOutputs& outputs);
  // Takes back the computed tokens that belong to rejected drafts, and counts all drafts of the step.
  void SettleDrafts(Request& request, int64_t num_accepted);
  // Appends sampled tokens until one ends the request. Returns the number of appended tokens.
  size_t AppendTokens(Request& request, std::span<const int32_t> token_ids);
  EngineCoreOutput& AddOutput(Request& request, size_t num_new_tokens, const Logprobs* logprobs,
                              EngineCoreOutputs& outputs);
  // Frees the blocks of a finished request and, if the request was sent to the workers, queues its id for them. Does
  // not destroy the Request.
  void Release(Request& request);
  // Destroys the running requests that are finished.
  void EraseFinished();
  Request* Find(RequestId id) const;

  // LoRA adapters: scheduler_loras.cc.
  void FindRunningLoRAs();
  void AddRunningLoRA(const Request& request);
  // Returns true if the request may run besides those of running_loras_.
  bool HasRoomForLoRA(const Request& request) const;
  // Moves the first waiting request to skipped_, unless too many requests have overtaken it or another skipped request.
  bool SkipFirst();
  // Moves the skipped requests back to the front of the waiting queue.
  void RestoreSkipped();
  std::string CheckLoRAs() const;

  // Beam search: scheduler_beams.cc.
  // Returns the number of tokens of each beam for which all beams fit into the KV cache if the group runs alone.
  int64_t MaxBeamTokens(const EngineCoreRequest& request) const;
  bool AcceptsBeams(const EngineCoreRequest& request, std::string* rejection_reason) const;
  void StartGroup(Request& seed);
  // Returns the group to which the id belongs, or null.
  BeamGroup* FindGroup(RequestId id) const;
  // Returns the number of sequences that the running groups may still start.
  int64_t NumReservedSeqs() const;
  // Returns the number of blocks that the beams of a waiting group need besides those of its prompt.
  int64_t NumBeamBlocks(const Request& request) const;
  void TakeBeamLogits(Request& beam, const Logprobs* logprobs);
  // Lets each group continue whose beams all have logits, or whose seed has computed the prompt for parked beams.
  void AdvanceGroups(EngineCoreOutputs& outputs);
  void Advance(BeamGroup& group, EngineCoreOutputs& outputs);
  void ContinueBeams(BeamGroup& group, const BeamSelection& selection);
  void Unpark(BeamGroup& group);
  // Starts a beam with these output tokens, which shares the blocks of the parent's first num_tokens tokens.
  Request* ForkBeam(BeamGroup& group, const Request& parent, std::vector<int32_t> output_token_ids, int64_t num_tokens);
  // Frees and destroys a running or waiting beam.
  void RemoveBeam(Request& beam);
  void PreemptGroup(BeamGroup& group, size_t& request_index, int64_t& token_budget);
  void FailGroup(BeamGroup& group, const std::string& error, EngineCoreOutputs& outputs);
  void AbortGroupWithOutput(BeamGroup& group, EngineCoreOutputs& outputs);
  EngineCoreOutput& AddGroupOutput(const BeamGroup& group, size_t rank, FinishReason reason,
                                   EngineCoreOutputs& outputs) const;
  // Removes all beams and destroys the group.
  void EndGroup(BeamGroup& group);
  std::string CheckGroups() const;

  const SchedulerConfig config_;
  const CacheConfig cache_;
  const int64_t max_model_len_;
  const int64_t max_tokens_that_fit_;  // the longest sequence that fits into all KV blocks if it runs alone
  const int64_t max_num_tokens_;       // min(max_model_len, max_tokens_that_fit + 1)
  KVCacheManager kv_cache_;
  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  std::map<RequestId, std::unique_ptr<BeamGroup>> beam_groups_;  // by first_id
  std::unique_ptr<RequestQueue> waiting_;
  std::vector<Request*> running_;
  std::vector<int32_t> running_loras_;  // the adapters of running_, up to date only in Schedule
  std::vector<Request*> skipped_;       // taken out of waiting_; empty except in ScheduleWaiting
  KVConnector* connector_ = nullptr;
  std::vector<Request*> loading_;  // kWaitingForRemoteKVs, in the order in which they started to wait
  bool step_in_progress_ = false;  // the KV of scheduled tokens is not computed yet
  std::vector<RequestId> finished_req_ids_;
  std::vector<RequestId> rolled_back_req_ids_;  // lost their blocks in RollBackStep; not yet sent to the workers

  std::vector<ScheduledRequest> scheduled_;
  SchedulerOutput output_;
  SteadyTime now_{};
  int64_t step_ = 0;
  int64_t num_preemptions_ = 0;
  int64_t num_computed_tokens_ = 0;
  int64_t num_interactive_ = 0;  // unfinished interactive requests
  int64_t num_steps_alone_ = 0;  // how many of the next steps have only interactive requests
  int64_t num_prompt_tokens_in_step_ = 0;
  int64_t num_prompt_tokens_ = 0;
  int64_t num_generation_tokens_ = 0;
  int64_t num_interactive_prompt_tokens_in_step_ = 0;
  int64_t num_interactive_tokens_ = 0;
  bool admission_paused_ = false;
  SpecDecodingStats spec_decoding_;
  KVTransferStats kv_transfer_;
};

}  // namespace vllm
