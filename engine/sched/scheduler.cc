#include "engine/sched/scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/kv_cache/kv_cache_demand.h"
#include "engine/sched/check_stop.h"
#include "kernels/threading/check.h"

namespace vllm {

Scheduler::Scheduler(const SchedulerConfig& config, const CacheConfig& cache, int64_t max_model_len,
                     BlockHashFunction hash_function)
    : config_(config),
      cache_(cache),
      max_model_len_(max_model_len),
      max_tokens_that_fit_(MaxTokensThatFit(cache, MaxChunk(config))),
      // A request whose tokens fill all blocks can still sample one more token, which needs no slot. After that token,
      // the request could never be scheduled again, so this limit, like max_model_len, ends a request even before
      // min_tokens.
      max_num_tokens_(std::min(max_model_len, max_tokens_that_fit_ + 1)),
      kv_cache_(cache, max_model_len, hash_function, MaxChunk(config)),
      waiting_(CreateRequestQueue(config.policy)) {
  VLLM_CHECK(config.max_num_batched_tokens > 0 && config.max_num_seqs > 0 && max_model_len > 0);
}

Scheduler::~Scheduler() = default;

bool Scheduler::AddRequest(EngineCoreRequestPtr request, std::string* rejection_reason) {
  const auto num_tokens = static_cast<int64_t>(request->prompt_token_ids.size());
  const auto reject = [&](int64_t limit, const std::string& why) {
    if (rejection_reason != nullptr) {
      *rejection_reason =
          "prompt is " + std::to_string(num_tokens) + " tokens, limit " + std::to_string(limit) + ": " + why;
    }
    return false;
  };
  if (requests_.contains(request->request_id) || beam_groups_.contains(request->request_id)) {
    if (rejection_reason != nullptr) {
      *rejection_reason =
          "request id " + std::to_string(request->request_id) + " is already in use by an unfinished request";
    }
    return false;
  }
  if (num_tokens == 0) {
    if (rejection_reason != nullptr) *rejection_reason = "prompt has no tokens";
    return false;
  }
  const int64_t num_generated = request->pooling_params ? 0 : 1;
  const std::string for_generated = num_generated == 0 ? "" : " and must also hold one generated token";
  if (num_tokens + num_generated > max_model_len_) {
    return reject(max_model_len_ - num_generated, "max_model_len is " + std::to_string(max_model_len_) + for_generated);
  }
  if (num_tokens + num_generated > max_tokens_that_fit_) {
    return reject(std::max<int64_t>(0, max_tokens_that_fit_ - num_generated),
                  "the KV cache has " + std::to_string(kv_cache_.num_blocks()) + " blocks of " +
                      std::to_string(kv_cache_.block_size()) + " tokens" + for_generated);
  }
  if (request->sampling_params.use_beam_search && !AcceptsBeams(*request, rejection_reason)) return false;
  const int64_t threshold = config_.long_prefill_token_threshold;
  const int64_t first_chunk = threshold > 0 ? std::min(threshold, num_tokens) : num_tokens;
  if (!config_.enable_chunked_prefill && first_chunk > config_.max_num_batched_tokens) {
    return reject(config_.max_num_batched_tokens, "without chunked prefill, max_num_batched_tokens limits the prompt");
  }
  auto owned = std::make_unique<Request>(std::move(request));
  Request* added = owned.get();
  requests_.emplace(added->id(), std::move(owned));
  num_interactive_ += added->is_interactive() ? 1 : 0;
  if (added->params().use_beam_search) StartGroup(*added);
  waiting_->Add(added);
  return true;
}

void Scheduler::FinishRequests(std::span<const RequestId> ids, FinishReason reason) {
  VLLM_CHECK(reason != FinishReason::kNone);
  for (const RequestId id : ids) {
    if (BeamGroup* group = FindGroup(id)) {
      EndGroup(*group);
      continue;
    }
    Request* request = Find(id);
    if (request == nullptr) continue;
    if (request->status == RequestStatus::kRunning) {
      std::erase(running_, request);
    } else if (request->status == RequestStatus::kWaitingForRemoteKVs) {
      std::erase(loading_, request);
    } else {
      waiting_->Remove(request);
    }
    request->status = ToFinishedStatus(reason);
    std::erase(rolled_back_req_ids_, id);
    Release(*request);
    requests_.erase(id);
  }
}

void Scheduler::AbortWithOutput(RequestId id, EngineCoreOutputs& outputs) {
  if (BeamGroup* group = FindGroup(id)) return AbortGroupWithOutput(*group, outputs);
  Request* request = Find(id);
  if (request == nullptr) return;
  const RequestStatus status = request->status;
  request->status = RequestStatus::kFinishedAborted;
  AddOutput(*request, 0, nullptr, outputs);
  request->status = status;  // FinishRequests removes the request from the queue that belongs to its status
  FinishRequests({&id, 1}, FinishReason::kAbort);
}

bool Scheduler::IsHeld() const {
  return admission_paused_ && running_.empty() && loading_.empty() && !waiting_->empty() &&
         waiting_->Peek()->status == RequestStatus::kWaiting && !waiting_->Peek()->is_interactive();
}

const SchedulerOutput& Scheduler::Schedule() {
  ++step_;
  now_ = std::chrono::steady_clock::now();
  output_.Clear();
  output_.finished_req_ids.swap(finished_req_ids_);
  output_.preempted_req_ids.swap(rolled_back_req_ids_);
  const int64_t num_preemptions_before = num_preemptions_;
  scheduled_.clear();

  int64_t token_budget = config_.max_num_batched_tokens;
  if (num_interactive_ == 0) num_steps_alone_ = 0;
  const bool interactive_only = HasInteractivePrefill() || num_steps_alone_ > 0;
  if (num_steps_alone_ > 0) --num_steps_alone_;
  if (num_interactive_ > 0 && !interactive_only && config_.enable_chunked_prefill) {
    token_budget = std::min(token_budget, std::max(kSharedStepTokens, num_running()));
  }
  if (num_interactive_ > 0) ScheduleRunning(token_budget, /*interactive=*/true);
  const int64_t budget_of_others = token_budget;
  if (!interactive_only) ScheduleRunning(token_budget, /*interactive=*/false);
  // Do not admit requests in a step that preempted one, because they would take the freed blocks.
  if (num_preemptions_ == num_preemptions_before) ScheduleWaiting(token_budget, interactive_only);
  if (num_interactive_ > 0 && !interactive_only) {
    num_steps_alone_ = std::min(kMaxStepsAlone, (budget_of_others - token_budget) / kTokensPerStepAlone);
  }
  BuildOutput();
  FindRunningLoRAs();
  output_.lora_slots.assign(running_loras_.begin(), running_loras_.end());
  step_in_progress_ = !scheduled_.empty();
  return output_;
}

bool Scheduler::HasInteractivePrefill() const {
  if (num_interactive_ == 0) return false;
  const Request* next = waiting_->Peek();
  if (next != nullptr && next->is_interactive()) return true;
  return std::any_of(running_.begin(), running_.end(), [](const Request* request) {
    return request->is_interactive() && request->num_tokens() - request->num_computed_tokens > 1;
  });
}

void Scheduler::ScheduleRunning(int64_t& token_budget, bool interactive) {
  size_t index = 0;
  while (index < running_.size() && token_budget > 0) {
    Request* request = running_[index];
    if (request->is_interactive() != interactive) {
      ++index;
      continue;
    }
    int64_t num_new_tokens = request->num_tokens() - request->num_computed_tokens;
    if (config_.long_prefill_token_threshold > 0) {
      num_new_tokens = std::min(num_new_tokens, config_.long_prefill_token_threshold);
    }
    const int64_t max_tokens = max_model_len_ - (request->is_pooling() ? 0 : 1);
    num_new_tokens = std::min({num_new_tokens, token_budget, max_tokens - request->num_computed_tokens});
    if (num_new_tokens <= 0) {
      // The order is not strictly first come, first served: later requests may run even if this one cannot.
      ++index;
      continue;
    }

    int64_t num_drafts =
        NumDraftsThatFit(*request, num_new_tokens, token_budget, num_running() - static_cast<int64_t>(index) - 1);
    bool preempted_itself = false;
    while (!kv_cache_.AllocateSlots(*request, num_new_tokens + num_drafts)) {
      if (num_drafts > 0) {
        num_drafts = 0;
        continue;
      }
      const RequestId id = request->id();
      PreemptOne(index, token_budget);
      preempted_itself = !IsRunning(id);
      if (preempted_itself) break;
    }
    if (preempted_itself) {
      // With the priority policy, requests after the victim may be able to run with the blocks that it freed. vLLM
      // would schedule an empty step here; this scheduler runs those requests now.
      if (scheduled_.empty()) continue;
      break;
    }
    request->num_scheduled_drafts = num_drafts;
    scheduled_.push_back({request, num_new_tokens + num_drafts, RequestStatus::kRunning});
    token_budget -= num_new_tokens + num_drafts;
    ++index;
  }
}

int64_t Scheduler::NumDraftsThatFit(const Request& request, int64_t num_new_tokens, int64_t token_budget,
                                    int64_t num_later) const {
  if (request.spec_token_ids.empty() || request.num_computed_tokens + num_new_tokens < request.num_tokens()) return 0;
  auto limit = static_cast<int64_t>(request.spec_token_ids.size());
  limit = std::min(limit, token_budget - num_new_tokens - num_later);
  if (config_.long_prefill_token_threshold > 0) {
    limit = std::min(limit, config_.long_prefill_token_threshold - num_new_tokens);
  }
  // Drafts must not take blocks that the other requests need for their next tokens.
  if (kv_cache_.pool().num_free_blocks() <= num_running() * static_cast<int64_t>(kv_cache_.num_groups())) {
    const int64_t num_tokens = request.num_computed_tokens + num_new_tokens;
    limit = std::min(limit, kv_cache_.BlocksFor(num_tokens) * kv_cache_.block_size() - num_tokens);
  }
  return std::max<int64_t>(0, limit);
}

int64_t Scheduler::MaxDrafts(const Request& request) const {
  int64_t limit = max_num_tokens_ - request.num_tokens();
  if (request.params().max_tokens) limit = std::min(limit, *request.params().max_tokens - request.num_output_tokens());
  return std::max<int64_t>(0, limit - 1);
}

void Scheduler::SetDrafts(RequestId id, std::span<const int32_t> token_ids, SpeculativeMethod method) {
  Request* request = Find(id);
  if (request == nullptr || request->status != RequestStatus::kRunning || token_ids.empty()) return;
  const auto count = std::min(token_ids.size(), static_cast<size_t>(MaxDrafts(*request)));
  request->spec_token_ids.assign(token_ids.begin(), token_ids.begin() + static_cast<std::ptrdiff_t>(count));
  request->spec_method = method;
}

void Scheduler::PreemptOne(size_t& request_index, int64_t& token_budget) {
  const auto precedes = [this](const Request& a, const Request& b) {
    if (a.is_interactive() != b.is_interactive()) return a.is_interactive();
    if (config_.policy != SchedulingPolicy::kPriority) return true;
    return std::pair(a.core()->priority, a.core()->arrival_time) <
           std::pair(b.core()->priority, b.core()->arrival_time);
  };
  size_t victim_index = 0;
  for (size_t i = 1; i < running_.size(); ++i) {
    if (precedes(*running_[victim_index], *running_[i])) victim_index = i;
  }
  Request* victim = running_[victim_index];
  // Before its first token, a group is preempted like any request.
  if (victim->beam_group != nullptr && victim->num_output_tokens() > 0) {
    return PreemptGroup(*victim->beam_group, request_index, token_budget);
  }
  Evict(*victim, request_index, token_budget);
  victim->status = RequestStatus::kPreempted;
  victim->num_computed_tokens = 0;
  victim->num_blocks_sent = 0;
  // Prompt logprobs are computed again from the first position.
  victim->prompt_logprobs.Clear();
  victim->ClearDrafts();
  ++victim->num_preemptions;
  ++num_preemptions_;
  waiting_->Prepend(victim);
  output_.preempted_req_ids.push_back(victim->id());
}

void Scheduler::Evict(Request& victim, size_t& request_index, int64_t& token_budget) {
  const auto position = std::find(running_.begin(), running_.end(), &victim);
  if (position - running_.begin() < static_cast<std::ptrdiff_t>(request_index)) --request_index;
  running_.erase(position);
  // If the victim was already scheduled in this step, return its tokens to the budget.
  const auto it = std::find_if(scheduled_.begin(), scheduled_.end(), [&](auto& s) { return s.request == &victim; });
  bool is_computed = true;
  if (it != scheduled_.end()) {
    // The hit of a request that was admitted in this step may be of blocks that this step computes.
    is_computed = it->status_before == RequestStatus::kRunning;
    token_budget += it->num_tokens;
    scheduled_.erase(it);
    // This step published blocks for tokens that will not be computed.
    kv_cache_.Unpublish(victim, victim.num_computed_tokens);
  }
  if (is_computed) SaveBlocks(victim);
  victim.num_blocks_at_load = -1;
  kv_cache_.Free(victim);
}

bool Scheduler::IsRunning(RequestId id) const {
  const Request* request = Find(id);
  return request != nullptr && request->status == RequestStatus::kRunning;
}

void Scheduler::ScheduleWaiting(int64_t& token_budget, bool interactive_only) {
  AdmitWaiting(token_budget, interactive_only);
  RestoreSkipped();
}

void Scheduler::AdmitWaiting(int64_t& token_budget, bool interactive_only) {
  FindRunningLoRAs();
  while (!waiting_->empty() && token_budget > 0) {
    Request* request = waiting_->Peek();
    if (interactive_only && !request->is_interactive()) return;
    if (admission_paused_ && request->status == RequestStatus::kWaiting && !request->is_interactive()) return;
    const bool has_room = num_running() + NumReservedSeqs() + NumSequences(*request->core()) <= config_.max_num_seqs;
    if (has_room && !HasRoomForLoRA(*request) && !request->is_interactive()) {
      if (!SkipFirst()) return;
      continue;
    }
    if (has_room && HasRoomForLoRA(*request)) {
      const ComputedBlocks computed = kv_cache_.GetComputedBlocks(*request);
      if (StartLoad(*request, computed)) continue;
      if (kv_cache_.has_recurrent_state() && WaitsForState(*request, computed)) {
        if (!SkipFirst()) return;
        continue;
      }
      int64_t num_new_tokens = request->num_tokens() - computed.num_tokens;
      if (config_.long_prefill_token_threshold > 0) {
        num_new_tokens = std::min(num_new_tokens, config_.long_prefill_token_threshold);
      }
      // A resumed request may be longer than the budget of a whole step. It is chunked even without chunked prefill.
      if (!config_.enable_chunked_prefill && num_new_tokens > token_budget &&
          num_new_tokens <= config_.max_num_batched_tokens) {
        return;
      }
      if (EndsEncoderStep(*request, num_new_tokens, token_budget)) return;
      num_new_tokens = std::min(num_new_tokens, token_budget);
      if (AdmitFirst(num_new_tokens, computed)) {
        token_budget -= num_new_tokens;
        AddRunningLoRA(*request);
        if (!skipped_.empty()) ++skipped_.front()->num_overtaken;
        continue;
      }
    }
    const bool can_preempt = request->is_interactive() && std::any_of(running_.begin(), running_.end(),
                                                                      [](auto* r) { return !r->is_interactive(); });
    if (!can_preempt) return;
    size_t no_index = 0;
    PreemptOne(no_index, token_budget);
    FindRunningLoRAs();
  }
}

bool Scheduler::AdmitFirst(int64_t num_new_tokens, const ComputedBlocks& computed) {
  Request* request = waiting_->Peek();
  if (!kv_cache_.AllocateSlots(*request, num_new_tokens, computed,
                               {.full_sequence_must_fit = config_.scheduler_reserve_full_isl,
                                .num_extra_blocks = NumBeamBlocks(*request)})) {
    return false;
  }
  if (request->status == RequestStatus::kWaiting) kv_cache_.RecordPrefixCacheStats(*request, computed.num_tokens);
  waiting_->Pop();
  running_.push_back(request);
  scheduled_.push_back({request, num_new_tokens, request->status});
  if (request->status == RequestStatus::kWaiting) {
    request->ReserveTokens(max_num_tokens_, kv_cache_.block_size());
    request->scheduled_time = now_;
    if (request->is_interactive()) num_interactive_tokens_ += computed.num_tokens;
  }
  if (request->num_preemptions == 0) request->num_cached_tokens = computed.num_tokens;
  request->status = RequestStatus::kRunning;
  request->num_computed_tokens = computed.num_tokens;
  return true;
}

void Scheduler::BuildOutput() {
  num_prompt_tokens_in_step_ = 0;
  num_interactive_prompt_tokens_in_step_ = 0;
  kv_cache_.TakeBlockCopies(output_.block_copies);
  for (const ScheduledRequest& scheduled : scheduled_) {
    Request& request = *scheduled.request;
    output_.has_interactive_request = output_.has_interactive_request || request.is_interactive();
    if (request.sent_to_workers) {
      MakeCachedRequestData(request, scheduled.status_before == RequestStatus::kPreempted);
    } else {
      MakeNewRequestData(request);
    }
    request.num_output_tokens_sent = request.num_output_tokens();
    request.num_blocks_sent = static_cast<int64_t>(kv_cache_.Blocks(request.id()).size());
    if (kv_cache_.has_recurrent_state()) {
      PlanCheckpoints(request, scheduled.num_tokens, scheduled.status_before != RequestStatus::kRunning);
    }
    output_.num_scheduled_tokens.push_back({request.id(), scheduled.num_tokens});
    output_.total_num_scheduled_tokens += scheduled.num_tokens;
    const int64_t num_prompt_tokens =
        std::clamp<int64_t>(request.num_prompt_tokens() - request.num_computed_tokens, 0, scheduled.num_tokens);
    num_prompt_tokens_in_step_ += num_prompt_tokens;
    if (request.is_interactive()) num_interactive_prompt_tokens_in_step_ += num_prompt_tokens;
    // Advance now, so that the next step could be scheduled while this one runs.
    request.num_computed_tokens += scheduled.num_tokens;
  }
}

void Scheduler::MakeNewRequestData(Request& request) {
  NewRequestData& data = output_.scheduled_new_reqs.emplace_back();
  data.request = request.core();
  data.num_computed_tokens = request.num_computed_tokens;
  for (size_t g = 0; g < kv_cache_.num_groups(); ++g) {
    for (const KVCacheBlock* block : kv_cache_.Blocks(request.id(), g)) data.block_ids.push_back(block->block_id);
  }
  for (const KVCacheBlock* block : kv_cache_.StateBlocks(request.id())) data.state_block_ids.push_back(block->block_id);
  request.sent_to_workers = true;
}

void Scheduler::MakeCachedRequestData(const Request& request, bool resumed) {
  CachedRequestData& data = output_.scheduled_cached_reqs;
  data.request_ids.push_back(request.id());
  data.resumed_from_preemption.push_back(resumed);
  data.num_computed_tokens.push_back(request.num_computed_tokens);
  const auto tokens = request.output_token_ids().subspan(static_cast<size_t>(request.num_output_tokens_sent));
  data.new_token_ids.insert(data.new_token_ids.end(), tokens.begin(), tokens.end());
  data.new_token_offsets.push_back(data.new_token_ids.size());
  const auto drafts = std::span(request.spec_token_ids).first(static_cast<size_t>(request.num_scheduled_drafts));
  data.spec_token_ids.insert(data.spec_token_ids.end(), drafts.begin(), drafts.end());
  data.spec_token_offsets.push_back(data.spec_token_ids.size());
  for (size_t g = 0; g < kv_cache_.num_groups(); ++g) {
    const auto blocks = kv_cache_.Blocks(request.id(), g).subspan(static_cast<size_t>(request.num_blocks_sent));
    for (const KVCacheBlock* block : blocks) data.new_block_ids.push_back(block->block_id);
  }
  data.new_block_offsets.push_back(data.new_block_ids.size());
  if (!resumed) return;
  for (const KVCacheBlock* block : kv_cache_.StateBlocks(request.id())) data.state_block_ids.push_back(block->block_id);
}

void Scheduler::RollBackStep() {
  step_in_progress_ = false;
  const auto for_each_scheduled = [this](auto&& f) {
    // Iterate backwards, so that requests that return to the front of the waiting queue keep their order.
    for (size_t i = scheduled_.size(); i-- > 0;) {
      const NumScheduledTokens& scheduled = output_.num_scheduled_tokens[i];
      Request* request = Find(scheduled.request_id);
      if (request != nullptr && request->status == RequestStatus::kRunning) {
        f(*request, scheduled.num_tokens, scheduled_[i].status_before);
      }
    }
  };
  for_each_scheduled([this](Request& request, int64_t num_tokens, RequestStatus /*status_before*/) {
    request.num_computed_tokens -= num_tokens;
    request.ClearDrafts();
    kv_cache_.Unpublish(request, request.num_computed_tokens);
  });
  // A request admitted in this step may share blocks that another request was to fill in the same step, so it loses all
  // its blocks. Some layers may have moved the recurrent state of a request, and others not.
  for_each_scheduled([this](Request& request, int64_t /*num_tokens*/, RequestStatus status_before) {
    if (status_before == RequestStatus::kRunning && !kv_cache_.has_recurrent_state()) return;
    std::erase(running_, &request);
    kv_cache_.Free(request);
    request.status = RequestStatus::kPreempted;
    request.num_computed_tokens = 0;
    request.num_blocks_sent = 0;
    waiting_->Prepend(&request);
    rolled_back_req_ids_.push_back(request.id());
  });
}

void Scheduler::UpdateFromOutput(const ModelRunnerOutput& output, EngineCoreOutputs& outputs) {
  step_in_progress_ = false;
  now_ = std::chrono::steady_clock::now();
  for (const ScheduledCheckpoint& checkpoint : output_.checkpoints) kv_cache_.PublishCheckpoints(checkpoint.request_id);
  for (const auto& [id, error] : output.failed) {
    Request* request = Find(id);
    if (request == nullptr || request->status != RequestStatus::kRunning) continue;
    if (request->beam_group != nullptr) {
      FailGroup(*request->beam_group, error, outputs);
      continue;
    }
    request->status = RequestStatus::kFinishedError;
    kv_cache_.EvictPublishedBy(id);
    AddOutput(*request, 0, nullptr, outputs).error = error;
    Release(*request);
  }
  for (const auto& [id, logprobs] : output.prompt_logprobs) {
    Request* request = Find(id);
    // Prompt logprobs are returned with the first token. Drop any that a resumed request computes again after that
    // token.
    if (request != nullptr && request->num_output_tokens() == 0) request->prompt_logprobs.Append(logprobs);
  }
  for (const auto& [id, pooled] : output.pooled) FinishPooling(id, pooled, outputs);
  for (size_t i = 0; i < output.request_ids.size(); ++i) {
    Request* request = Find(output.request_ids[i]);
    if (request == nullptr || request->status != RequestStatus::kRunning) continue;
    const size_t begin = output.sampled_offsets[i];
    const auto token_ids = std::span(output.sampled_token_ids).subspan(begin, output.sampled_offsets[i + 1] - begin);
    const int32_t row = i < output.logprobs_index.size() ? output.logprobs_index[i] : -1;
    const Logprobs* logprobs = row < 0 ? nullptr : &output.logprobs[static_cast<size_t>(row)];
    if (request->beam_group != nullptr) {
      if (!token_ids.empty()) TakeBeamLogits(*request, logprobs);
      continue;
    }
    const bool had_drafts = request->num_scheduled_drafts > 0;
    if (had_drafts) SettleDrafts(*request, i < output.num_accepted_drafts.size() ? output.num_accepted_drafts[i] : 0);
    if (token_ids.empty()) continue;
    request->ClearDrafts();  // also those that did not fit into the step, because they follow older tokens
    const size_t num_appended = AppendTokens(*request, token_ids);
    if (had_drafts) kv_cache_.PublishComputed(*request);
    AddOutput(*request, num_appended, logprobs, outputs);
    if (IsFinished(request->status)) Release(*request);
  }
  if (!beam_groups_.empty()) AdvanceGroups(outputs);
  EraseFinished();
  num_computed_tokens_ += output_.total_num_scheduled_tokens;
  num_prompt_tokens_ += num_prompt_tokens_in_step_;
  num_interactive_tokens_ += num_interactive_prompt_tokens_in_step_;
  outputs.stats = MakeStats();
}

void Scheduler::SettleDrafts(Request& request, int64_t num_accepted) {
  const int64_t num_rejected = request.num_scheduled_drafts - num_accepted;
  request.num_computed_tokens -= num_rejected;
  num_computed_tokens_ -= num_rejected;
  request.num_draft_tokens += request.num_scheduled_drafts;
  request.num_accepted_draft_tokens += num_accepted;
  spec_decoding_.Add(request.spec_method, static_cast<size_t>(request.num_scheduled_drafts),
                     static_cast<size_t>(num_accepted));
  request.num_scheduled_drafts = 0;
}

size_t Scheduler::AppendTokens(Request& request, std::span<const int32_t> token_ids) {
  size_t num_appended = 0;
  for (const int32_t token_id : token_ids) {
    request.AppendOutputToken(token_id);
    ++num_appended;
    if (CheckStop(request, max_num_tokens_)) break;
  }
  return num_appended;
}

EngineCoreOutput& Scheduler::AddOutput(Request& request, size_t num_new_tokens, const Logprobs* logprobs,
                                       EngineCoreOutputs& outputs) {
  EngineCoreOutput& output = outputs.Add(request.id());
  const auto token_ids = request.output_token_ids().last(num_new_tokens);
  output.new_token_ids.assign(token_ids.begin(), token_ids.end());
  if (logprobs != nullptr) output.new_logprobs.AppendFirst(*logprobs, num_new_tokens);
  const bool first = num_new_tokens > 0 && token_ids.size() == request.output_token_ids().size();
  if (first) {
    std::swap(output.prompt_logprobs, request.prompt_logprobs);
  }
  if (num_new_tokens > 0) {
    if (request.first_token_time == SteadyTime{}) request.first_token_time = now_;
    request.last_token_time = now_;
  }
  num_generation_tokens_ += static_cast<int64_t>(num_new_tokens);
  if (request.is_interactive()) num_interactive_tokens_ += static_cast<int64_t>(num_new_tokens);
  output.finish_reason = ToFinishReason(request.status);
  output.stop_token_id = request.stop_token_id;
  output.num_cached_tokens = std::max<int64_t>(0, request.num_cached_tokens);
  output.num_preemptions = request.num_preemptions;
  output.num_draft_tokens = request.num_draft_tokens;
  output.num_accepted_draft_tokens = request.num_accepted_draft_tokens;
  output.scheduled_time = request.scheduled_time;
  output.first_token_time = request.first_token_time;
  output.last_token_time = request.last_token_time;
  return output;
}

void Scheduler::Release(Request& request) {
  num_interactive_ -= request.is_interactive() ? 1 : 0;
  if (!step_in_progress_) SaveBlocks(request);
  kv_cache_.Free(request);
  if (request.sent_to_workers) finished_req_ids_.push_back(request.id());
}

void Scheduler::EraseFinished() {
  // Compact the list in place. This keeps the order and reads no request after its destruction.
  size_t num_kept = 0;
  for (Request* request : running_) {
    if (IsFinished(request->status)) {
      requests_.erase(request->id());
    } else {
      running_[num_kept++] = request;
    }
  }
  running_.resize(num_kept);
}

Request* Scheduler::Find(RequestId id) const {
  const auto it = requests_.find(id);
  return it == requests_.end() ? nullptr : it->second.get();
}

void Scheduler::AppendWaiting(size_t max, std::vector<const Request*>& requests) const {
  const size_t num_loading = std::min(max, loading_.size());
  requests.insert(requests.end(), loading_.begin(), loading_.begin() + static_cast<std::ptrdiff_t>(num_loading));
  waiting_->AppendFirst(max - num_loading, requests);
}

const Request* Scheduler::FindRequest(RequestId id) const { return Find(id); }

SchedulerStats Scheduler::MakeStats() const {
  return {.step = step_,
          .num_running_reqs = num_running(),
          .num_waiting_reqs = num_waiting(),
          .kv_cache_usage = kv_cache_.usage(),
          .prefix_cache = kv_cache_.prefix_cache_stats(),
          .num_preemptions = num_preemptions_,
          .num_scheduled_tokens = output_.total_num_scheduled_tokens,
          .num_computed_tokens = num_computed_tokens_,
          .num_prompt_tokens = num_prompt_tokens_,
          .num_generation_tokens = num_generation_tokens_,
          .num_interactive_tokens = num_interactive_tokens_,
          .admission_paused = admission_paused_,
          .spec_decoding = spec_decoding_,
          .kv_transfer = kv_transfer_};
}

}  // namespace vllm
