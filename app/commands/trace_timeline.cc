#include "app/commands/trace_timeline.h"

#include <algorithm>
#include <span>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "app/output/size_text.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

std::string IdsText(std::span<const RequestId> ids) {
  std::string text;
  for (const RequestId id : ids) text += (text.empty() ? "" : ", ") + std::to_string(id);
  return text;
}

// Returns the requests with their tokens, such as "1-3:1 4:60 new (16 cached)". Running requests with consecutive ids
// and equally many tokens share an entry.
std::string ScheduledText(std::span<const TraceScheduled> scheduled) {
  std::string text;
  for (size_t i = 0; i < scheduled.size();) {
    const TraceScheduled& first = scheduled[i];
    size_t end = i + 1;
    while (end < scheduled.size() && first.kind == ScheduledKind::kRunning &&
           scheduled[end].kind == ScheduledKind::kRunning && scheduled[end].num_tokens == first.num_tokens &&
           scheduled[end].request_id == scheduled[end - 1].request_id + 1) {
      ++end;
    }
    text += (text.empty() ? "" : " ") + std::to_string(first.request_id);
    if (end - i > 1) text += "-" + std::to_string(scheduled[end - 1].request_id);
    text += ":" + std::to_string(first.num_tokens);
    if (first.kind != ScheduledKind::kRunning) {
      text += first.kind == ScheduledKind::kNew ? " new" : " resumed";
      if (first.num_computed_tokens > 0) text += " (" + std::to_string(first.num_computed_tokens) + " cached)";
    }
    i = end;
  }
  return text;
}

std::string EndedText(std::span<const std::pair<RequestId, FinishReason>> ended) {
  std::string text;
  for (const auto& [id, reason] : ended) {
    text += (text.empty() ? "" : ", ") + std::to_string(id) + " (" + std::string(ToString(reason)) + ")";
  }
  return text;
}

FinishReason ReasonOf(SampledEnd end) {
  switch (end) {
    case SampledEnd::kContinues:
      return FinishReason::kNone;
    case SampledEnd::kEos:
    case SampledEnd::kStopToken:
      return FinishReason::kStop;
    case SampledEnd::kLength:
      return FinishReason::kLength;
    case SampledEnd::kError:
      return FinishReason::kError;
  }
  return FinishReason::kNone;
}

}  // namespace

std::string TraceTimeline::Heading() const {
  const SchedulerConfig& scheduler = begin_.scheduler;
  const CacheConfig& cache = begin_.cache;
  const char* policy = scheduler.policy == SchedulingPolicy::kPriority ? "priority" : "fcfs";
  if (as_json_) {
    return DumpJson({{"trace_version", kTraceVersion},
                     {"program_version", begin_.program_version},
                     {"scheduling_policy", policy},
                     {"max_num_batched_tokens", scheduler.max_num_batched_tokens},
                     {"max_num_seqs", scheduler.max_num_seqs},
                     {"long_prefill_token_threshold", scheduler.long_prefill_token_threshold},
                     {"enable_chunked_prefill", scheduler.enable_chunked_prefill},
                     {"enable_prefix_caching", cache.enable_prefix_caching},
                     {"num_blocks", cache.num_blocks},
                     {"num_state_blocks", cache.num_state_blocks},
                     {"block_size", cache.block_size},
                     {"group_windows", cache.group_windows},
                     {"max_model_len", begin_.max_model_len}});
  }
  std::string text = "vllmcli " + begin_.program_version + ", " + policy + ", at most " +
                     std::to_string(scheduler.max_num_batched_tokens) + " tokens and " +
                     std::to_string(scheduler.max_num_seqs) + " sequences per step, " +
                     std::to_string(cache.num_blocks) + " blocks of " + std::to_string(cache.block_size) +
                     " tokens, context " + std::to_string(begin_.max_model_len);
  if (!scheduler.enable_chunked_prefill) text += ", no chunked prefill";
  if (!cache.enable_prefix_caching) text += ", no prefix caching";
  if (scheduler.long_prefill_token_threshold > 0) {
    text += ", at most " + std::to_string(scheduler.long_prefill_token_threshold) + " tokens of a prompt per step";
  }
  if (cache.group_windows != std::vector<int64_t>{0}) {
    text += ", KV groups:";
    for (const int64_t window : cache.group_windows) {
      text += window > 0 ? " window " + std::to_string(window) : " full";
    }
  }
  if (cache.num_state_blocks > 0) {
    text += ", recurrent states of " + std::to_string(cache.num_state_blocks) + " blocks";
  }
  return text;
}

std::optional<std::string> TraceTimeline::Take(const TraceRecord& record) {
  std::optional<std::string> line;
  switch (record.type) {
    case TraceRecordType::kBegin:
      break;
    case TraceRecordType::kAdd:
      TakeAdd(record.add);
      break;
    case TraceRecordType::kFinish:
      for (const RequestId id : record.finish.request_ids) {
        if (requests_.erase(id) > 0) events_.ended.emplace_back(id, record.finish.reason);
      }
      break;
    case TraceRecordType::kReset:
      events_.reset |= record.reset_ok;
      break;
    case TraceRecordType::kDrafts:
      break;
    case TraceRecordType::kPause:
      events_.pause = record.paused;
      break;
    case TraceRecordType::kStep:
      if (has_step_) line = EndStep(Result::kNone, 0);
      TakeStep(record.step);
      break;
    case TraceRecordType::kUpdate:
      if (!has_step_) break;
      TakeUpdate(record.update);
      return EndStep(Result::kDone, record.update.elapsed_us);
    case TraceRecordType::kRollBack:
      if (!has_step_) break;
      RollBack();
      return EndStep(Result::kRolledBack, record.rollback_elapsed_us);
    case TraceRecordType::kEnd:
      has_end_ = true;
      break;
  }
  return line;
}

std::optional<std::string> TraceTimeline::Finish() {
  if (!has_step_ && events_.empty()) return std::nullopt;
  if (has_step_) return EndStep(Result::kNone, 0);
  // Show the events as a step without tokens.
  step_ = {};
  preempted_.clear();
  num_prefill_tokens_ = num_decode_tokens_ = 0;
  ++num_steps_;
  return EndStep(Result::kNone, 0);
}

void TraceTimeline::TakeAdd(const TraceAdd& add) {
  (add.accepted ? events_.added : events_.rejected).push_back(add.request_id);
  if (add.accepted) requests_[add.request_id] = {add.num_prompt_tokens + add.num_prior_output_tokens, 0, 0, false};
}

void TraceTimeline::TakeStep(const TraceStep& step) {
  has_step_ = true;
  ++num_steps_;
  step_ = step;
  time_ms_ += static_cast<double>(step.elapsed_us) / 1000.0;
  preempted_.clear();
  for (const RequestId id : step.preempted_req_ids) {
    if (rolled_back_.erase(id) == 0) preempted_.push_back(id);
  }
  num_prefill_tokens_ = num_decode_tokens_ = 0;
  for (const TraceScheduled& scheduled : step.scheduled) {
    const auto it = requests_.find(scheduled.request_id);
    if (it == requests_.end()) continue;
    Request& request = it->second;
    if (scheduled.kind != ScheduledKind::kRunning) request.num_computed_tokens = scheduled.num_computed_tokens;
    request.num_computed_before = request.num_computed_tokens;
    const bool is_decode = request.has_output && scheduled.kind == ScheduledKind::kRunning &&
                           request.num_computed_tokens + 1 == request.num_tokens;
    // Tokens that are not known yet are drafts.
    request.num_computed_tokens = std::min(request.num_computed_tokens + scheduled.num_tokens, request.num_tokens);
    (is_decode ? num_decode_tokens_ : num_prefill_tokens_) += scheduled.num_tokens;
  }
}

void TraceTimeline::TakeUpdate(const TraceUpdate& update) {
  for (const TraceSampled& sampled : update.sampled) {
    const auto it = requests_.find(sampled.request_id);
    if (it == requests_.end()) continue;
    it->second.num_tokens += sampled.num_tokens;
    it->second.num_computed_tokens += sampled.num_accepted_drafts;
    it->second.has_output = true;
    if (sampled.end == SampledEnd::kContinues) continue;
    events_.ended.emplace_back(sampled.request_id, ReasonOf(sampled.end));
    requests_.erase(it);
  }
}

void TraceTimeline::RollBack() {
  for (const TraceScheduled& scheduled : step_.scheduled) {
    const auto it = requests_.find(scheduled.request_id);
    if (it == requests_.end()) continue;
    it->second.num_computed_tokens = it->second.num_computed_before;
    if (scheduled.kind != ScheduledKind::kRunning) rolled_back_.insert(scheduled.request_id);
  }
}

std::string TraceTimeline::EndStep(Result result, int64_t elapsed_us) {
  const double run_ms = static_cast<double>(elapsed_us) / 1000.0;
  std::string line = as_json_ ? StepJson(result, run_ms) : StepText(result, run_ms);
  has_step_ = false;
  events_ = {};
  return line;
}

std::string TraceTimeline::StepText(Result result, double run_ms) const {
  std::string text = "step " + std::to_string(num_steps_) + " at " + FixedText(time_ms_ / 1000.0, 3) + " s";
  if (result != Result::kNone) text += ", " + FixedText(run_ms, 3) + " ms";
  text += ": " + std::to_string(num_prefill_tokens_ + num_decode_tokens_) + "/" +
          std::to_string(begin_.scheduler.max_num_batched_tokens) + " tokens (" + std::to_string(num_prefill_tokens_) +
          " prefill, " + std::to_string(num_decode_tokens_) + " decode), " + std::to_string(step_.num_blocks_in_use) +
          "/" + std::to_string(begin_.cache.num_blocks) + " blocks";
  const auto add = [&text](const char* what, const std::string& list) {
    if (!list.empty()) text += std::string("; ") + what + list;
  };
  add("", ScheduledText(step_.scheduled));
  add("added ", IdsText(events_.added));
  add("rejected ", IdsText(events_.rejected));
  add("preempted ", IdsText(preempted_));
  add("finished ", EndedText(events_.ended));
  if (events_.reset) text += "; prefix cache emptied";
  if (events_.pause) text += *events_.pause ? "; admission paused" : "; admission resumed";
  if (result == Result::kRolledBack) text += "; cancelled and rolled back";
  if (result == Result::kNone && !step_.scheduled.empty()) text += "; no result";
  return text;
}

std::string TraceTimeline::StepJson(Result result, double run_ms) const {
  constexpr const char* kKinds[] = {"running", "new", "resumed"};
  constexpr const char* kResults[] = {"none", "done", "rolled_back"};
  Json requests = Json::array();
  for (const TraceScheduled& scheduled : step_.scheduled) {
    Json request = {{"id", scheduled.request_id},
                    {"tokens", scheduled.num_tokens},
                    {"state", kKinds[static_cast<size_t>(scheduled.kind)]},
                    {"new_blocks", scheduled.num_block_ids}};
    if (scheduled.kind != ScheduledKind::kRunning) request["cached_tokens"] = scheduled.num_computed_tokens;
    requests.push_back(std::move(request));
  }
  Json finished = Json::array();
  for (const auto& [id, reason] : events_.ended) finished.push_back({{"id", id}, {"reason", ToString(reason)}});
  Json step({{"step", num_steps_},
             {"time_ms", time_ms_},
             {"run_ms", run_ms},
             {"result", kResults[static_cast<size_t>(result)]},
             {"prefill_tokens", num_prefill_tokens_},
             {"decode_tokens", num_decode_tokens_},
             {"max_tokens", begin_.scheduler.max_num_batched_tokens},
             {"blocks_in_use", step_.num_blocks_in_use},
             {"requests", std::move(requests)},
             {"added", events_.added},
             {"rejected", events_.rejected},
             {"preempted", preempted_},
             {"finished", std::move(finished)},
             {"prefix_cache_emptied", events_.reset}});
  if (events_.pause) step["admission_paused"] = *events_.pause;
  return DumpJson(step);
}

}  // namespace vllm::app
