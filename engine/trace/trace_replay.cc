#include "engine/trace/trace_replay.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/kv_cache/kv_cache_demand.h"
#include "engine/sched/scheduler.h"
#include "engine/trace/trace_decisions.h"

namespace vllm {
namespace {

// Made-up tokens. The numbers of blocks are positive.
constexpr int32_t kPlainToken = 0;
constexpr int32_t kEosToken = -1;
constexpr int32_t kStopToken = -2;

void CheckLimits(const TraceBegin& begin, const ReplayLimits& limits) {
  // Upper bounds of the memory that BlockPool and PrefixTrie take for each block; see MaxPrefixes in
  // kv_cache_manager.cc.
  constexpr size_t kBytesPerBlock = 128;
  constexpr size_t kBytesPerPrefix = 80;
  const std::vector<int64_t>& windows = begin.cache.group_windows;
  const bool slides = std::find(windows.begin(), windows.end(), 0) == windows.end();
  const auto num_blocks = static_cast<size_t>(begin.cache.num_blocks);
  const size_t num_prefixes =
      num_blocks * (slides ? 16 : 2) + static_cast<size_t>(begin.max_model_len / begin.cache.block_size);
  const size_t bytes = num_blocks * kBytesPerBlock + num_prefixes * kBytesPerPrefix;
  if (bytes > limits.max_scheduler_bytes) {
    throw ResourceError("the replay needs too much memory for " + std::to_string(num_blocks) + " KV blocks (about " +
                        std::to_string(bytes >> 20) + " MiB, limit " +
                        std::to_string(limits.max_scheduler_bytes >> 20) + " MiB)");
  }
  if (begin.max_model_len > limits.max_model_len) {
    throw ResourceError("max_model_len is too large for a replay (" + std::to_string(begin.max_model_len) + ", limit " +
                        std::to_string(limits.max_model_len) + ")");
  }
}

class Replay {
 public:
  Replay(const TraceBegin& begin, const ReplayLimits& limits) : begin_(begin), limits_(limits) {
    CheckLimits(begin, limits);
    scheduler_ = std::make_unique<Scheduler>(begin.scheduler, begin.cache, begin.max_model_len);
  }

  // Processes a record. Returns the difference between the recorded and the replayed decision, or an empty string.
  std::string Take(const TraceRecord& record) {
    if (result_.has_end) throw ModelError("a record follows the end of the engine");
    switch (record.type) {
      case TraceRecordType::kBegin:
        break;
      case TraceRecordType::kAdd:
        return Add(record.add);
      case TraceRecordType::kFinish:
        for (const RequestId id : record.finish.request_ids) Forget(id);
        scheduler_->FinishRequests(record.finish.request_ids, record.finish.reason);
        break;
      case TraceRecordType::kReset:
        if (scheduler_->ResetPrefixCache() == record.reset_ok) break;
        return std::string("resetting the prefix cache: recorded ") + (record.reset_ok ? "success" : "failure") +
               ", replayed the opposite";
      case TraceRecordType::kStep:
        return Step(record.step);
      case TraceRecordType::kUpdate:
        return Update(record.update);
      case TraceRecordType::kRollBack:
        TakeStep("rolled back");
        scheduler_->RollBackStep();
        break;
      case TraceRecordType::kEnd:
        result_.has_end = true;
        break;
      case TraceRecordType::kPause:
        scheduler_->SetAdmissionPaused(record.paused);
        break;
      case TraceRecordType::kDrafts:
        for (const TraceDrafts& drafts : record.drafts) {
          made_up_drafts_.assign(static_cast<size_t>(drafts.num_tokens), kPlainToken);
          scheduler_->SetDrafts(drafts.request_id, made_up_drafts_, SpeculativeMethod::kSuffix);
        }
        break;
    }
    return {};
  }

  ReplayResult TakeResult() {
    const SchedulerStats stats = scheduler_->MakeStats();
    result_.num_preemptions = stats.num_preemptions;
    result_.num_cached_tokens = stats.prefix_cache.hits;
    return std::move(result_);
  }

  int64_t num_steps() const { return result_.num_steps; }
  // Returns true if the last step has not been updated or rolled back.
  bool is_in_step() const { return is_in_step_; }

 private:
  std::string StepName() const { return "step " + std::to_string(result_.num_steps); }

  // Ends the current step. `what` names the reason for an error message.
  void TakeStep(const char* what) {
    if (!is_in_step_) throw ModelError(StepName() + ": no step runs that could be " + what);
    is_in_step_ = false;
  }

  // Returns the made-up token that represents a block with this tag.
  int32_t BlockToken(uint64_t tag) {
    constexpr size_t kBytesPerTag = 48;  // of an entry of the hash table
    if (block_tokens_.size() >= limits_.max_tag_bytes / kBytesPerTag) {
      throw ResourceError("the replay needs too much memory for the blocks of all requests (limit " +
                          std::to_string(limits_.max_tag_bytes >> 20) + " MiB)");
    }
    const auto [it, inserted] = block_tokens_.try_emplace(tag, static_cast<int32_t>(block_tokens_.size() + 1));
    return it->second;
  }

  void Forget(RequestId id) {
    const auto it = token_bytes_.find(id);
    if (it == token_bytes_.end()) return;
    num_token_bytes_ -= it->second;
    token_bytes_.erase(it);
  }

  std::string Add(const TraceAdd& add) {
    const std::string name = "request " + std::to_string(add.request_id);
    const int64_t num_tokens = add.num_prompt_tokens + add.num_prior_output_tokens;
    if (static_cast<int64_t>(add.tags.size()) != NumTraceTags(begin_, add)) {
      throw ModelError(name + ": wrong number of block tags");
    }
    if (add.request_id == 0 || (add.num_prior_output_tokens > 0 && num_tokens >= begin_.max_model_len)) {
      throw ModelError(name + ": cannot exist");
    }
    const auto bytes = static_cast<size_t>(num_tokens) * sizeof(int32_t);
    if (num_token_bytes_ + bytes > limits_.max_token_bytes) {
      throw ResourceError("the replay needs too much memory for the tokens of unfinished requests (limit " +
                          std::to_string(limits_.max_token_bytes >> 20) + " MiB)");
    }
    auto request = std::make_shared<EngineCoreRequest>();
    request->request_id = add.request_id;
    request->prompt_token_ids.assign(static_cast<size_t>(add.num_prompt_tokens), kPlainToken);
    request->prior_output_token_ids.assign(static_cast<size_t>(add.num_prior_output_tokens), kPlainToken);
    for (size_t i = 0; i < add.tags.size(); ++i) {
      const size_t position = (i + 1) * static_cast<size_t>(begin_.cache.block_size) - 1;
      const size_t num_prompt_tokens = request->prompt_token_ids.size();
      (position < num_prompt_tokens ? request->prompt_token_ids[position]
                                    : request->prior_output_token_ids[position - num_prompt_tokens]) =
          BlockToken(add.tags[i]);
    }
    SamplingParams& params = request->sampling_params;
    if (add.max_tokens_plus_one > 0) params.max_tokens = std::max<int64_t>(1, add.max_tokens_plus_one - 1);
    params.min_tokens = add.min_tokens;
    params.eos_token_id = kEosToken;
    params.stop_token_ids = {kStopToken};
    if (add.prompt_logprobs) params.prompt_logprobs = 0;
    params.skip_reading_prefix_cache = add.skip_reading_prefix_cache;
    request->arrival_time = SteadyTime(std::chrono::nanoseconds(add.arrival_ns));
    request->priority = add.priority;
    request->interactive = add.interactive;
    std::string rejection_reason;
    const bool accepted = scheduler_->AddRequest(std::move(request), &rejection_reason);
    if (accepted) {
      ++result_.num_requests;
      token_bytes_[add.request_id] = bytes;
      num_token_bytes_ += bytes;
    }
    if (accepted == add.accepted) return {};
    return name + ": recorded " + (add.accepted ? "accepted" : "rejected") + ", replayed " +
           (accepted ? "accepted" : "rejected, because the " + rejection_reason);
  }

  std::string Step(const TraceStep& step) {
    if (is_in_step_ && !unsampled_.empty()) throw ModelError(StepName() + ": has no result");
    ++result_.num_steps;
    const SchedulerOutput& output = scheduler_->Schedule();
    const BlockPool& pool = scheduler_->kv_cache().pool();
    SetTraceStep(output, pool.num_blocks() - pool.num_free_blocks(), replayed_);
    is_in_step_ = true;
    unsampled_.clear();
    for (const NumScheduledTokens& scheduled : output.num_scheduled_tokens) unsampled_.insert(scheduled.request_id);
    return StepDifference(step, replayed_);
  }

  std::string Update(const TraceUpdate& update) {
    TakeStep("updated");
    runner_output_.Clear();
    size_t tag_index = 0;
    for (const TraceSampled& sampled : update.sampled) {
      const std::string name = StepName() + ": request " + std::to_string(sampled.request_id);
      const Request* request = scheduler_->FindRequest(sampled.request_id);
      if (unsampled_.erase(sampled.request_id) == 0 || request == nullptr) {
        throw ModelError(name + ": has a result but was not scheduled");
      }
      if (sampled.end == SampledEnd::kError) {
        if (sampled.num_tokens > 0 || sampled.num_tags > 0) throw ModelError(name + ": failed, but has tokens");
        runner_output_.failed.emplace_back(sampled.request_id, "");
        continue;
      }
      if (sampled.num_tokens == 0 ||
          request->num_computed_tokens - request->num_scheduled_drafts != request->num_tokens()) {
        throw ModelError(name + ": has a result that this step cannot compute");
      }
      if (sampled.num_accepted_drafts > request->num_scheduled_drafts) {
        throw ModelError(name + ": more drafts are accepted than were verified");
      }
      AddSampled(sampled, *request, std::span(update.tags), tag_index, name);
    }
    outputs_.Clear();
    scheduler_->UpdateFromOutput(runner_output_, outputs_);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].finish_reason != FinishReason::kNone) Forget(outputs_[i].request_id);
    }
    return UpdateDifference(update, outputs_);
  }

  // Adds the request's made-up tokens to runner_output_.
  void AddSampled(const TraceSampled& sampled, const Request& request, std::span<const uint64_t> tags,
                  size_t& tag_index, const std::string& name) {
    const size_t end_of_tags = tag_index + static_cast<size_t>(sampled.num_tags);
    const bool has_tags = begin_.cache.enable_prefix_caching;
    runner_output_.request_ids.push_back(sampled.request_id);
    for (int64_t i = 1; i <= sampled.num_tokens; ++i) {
      int32_t token = kPlainToken;
      if (has_tags && (request.num_tokens() + i) % begin_.cache.block_size == 0) {
        if (tag_index == end_of_tags) throw ModelError(name + ": a block has no tag");
        token = BlockToken(tags[tag_index++]);
      }
      if (i == sampled.num_tokens && sampled.end == SampledEnd::kEos) token = kEosToken;
      if (i == sampled.num_tokens && sampled.end == SampledEnd::kStopToken) token = kStopToken;
      runner_output_.sampled_token_ids.push_back(token);
    }
    if (tag_index != end_of_tags) throw ModelError(name + ": has too many block tags");
    runner_output_.sampled_offsets.push_back(runner_output_.sampled_token_ids.size());
    runner_output_.logprobs_index.push_back(-1);
    runner_output_.num_accepted_drafts.push_back(static_cast<int32_t>(sampled.num_accepted_drafts));
  }

  const TraceBegin begin_;
  const ReplayLimits limits_;
  std::unique_ptr<Scheduler> scheduler_;
  ReplayResult result_;
  std::unordered_map<uint64_t, int32_t> block_tokens_;
  std::unordered_map<RequestId, size_t> token_bytes_;  // of unfinished requests
  size_t num_token_bytes_ = 0;
  bool is_in_step_ = false;
  std::unordered_set<RequestId> unsampled_;  // scheduled in the last step, without a result so far
  TraceStep replayed_;
  std::vector<int32_t> made_up_drafts_;
  ModelRunnerOutput runner_output_;
  EngineCoreOutputs outputs_;
};

}  // namespace

ReplayResult ReplayTrace(TraceReader& reader, const ReplayLimits& limits) {
  Replay replay(reader.begin(), limits);
  TraceRecord record;
  std::string difference;
  while (difference.empty() && reader.Next(record)) {
    // An input that is added after a step and decided differently belongs to the next step.
    difference = replay.Take(record);
    const bool is_of_step = record.type == TraceRecordType::kStep || record.type == TraceRecordType::kUpdate;
    const std::string step = std::to_string(replay.num_steps() + (is_of_step ? 0 : 1));
    if (!difference.empty()) difference = (is_of_step ? "at step " : "before step ") + step + ": " + difference;
  }
  ReplayResult result = replay.TakeResult();
  result.difference = std::move(difference);
  return result;
}

}  // namespace vllm
