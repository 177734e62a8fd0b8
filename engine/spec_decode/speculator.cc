#include "engine/spec_decode/speculator.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace vllm {
namespace {

// The expected gain below which no token is drafted, so that errors of the estimates do not make decoding slower.
constexpr double kMinGain = 1.01;
// After this many steps with proposals, their mean gain decides whether the proposer pauses. Each pause is twice as
// long as the one before it, in steps.
constexpr int64_t kGainWindow = 8;
constexpr int64_t kMinPause = 32;
constexpr int64_t kMaxPause = 1024;
// A proposer that takes less than this share of a step never pauses.
constexpr double kFreeShare = 0.01;

}  // namespace

Speculator::Speculator(const VllmConfig& config, std::unique_ptr<Proposer> proposer)
    : config_(config.speculative),
      vocab_size_(config.model.vocab_size),
      workers_append_forced_(config.structured_outputs.enable_jump_decoding),
      limits_depth_(config.speculative.adaptive && config.speculative.method == SpeculativeMethod::kDraftModel),
      proposer_(std::move(proposer)) {}

Speculator::~Speculator() = default;

void Speculator::AfterStep(const SchedulerOutput& step, const EngineCoreOutputs& outputs, double seconds,
                           Scheduler& scheduler) {
  // In a decode step, each request has one token and its drafts.
  const auto num_drafts = static_cast<int64_t>(step.scheduled_cached_reqs.spec_token_ids.size());
  const auto num_requests = static_cast<int64_t>(step.num_scheduled_tokens.size());
  if (num_requests > 0 && step.total_num_scheduled_tokens == num_requests + num_drafts) {
    step_cost_.Add(step.total_num_scheduled_tokens, seconds);
  }
  const int64_t num_accepted_before = num_accepted_;
  CollectRequests(outputs, scheduler);
  CountGain(step, num_accepted_ - num_accepted_before);
  if (requests_.empty()) return;
  Propose();
  while (proposed_.num_requests() < requests_.size()) proposed_.EndRequest();
  ApplyGrammars();
  if (drafts_.token_ids.empty()) return;
  if (config_.adaptive) {
    ChooseAdaptively();
  } else {
    for (Candidate& candidate : candidates_) candidate.num_chosen = candidate.end - candidate.begin;
  }
  for (const Candidate& candidate : candidates_) {
    if (candidate.begin == candidate.end) continue;
    if (candidate.num_chosen == 0) {
      DraftCalibration::Forget(candidate.info->record);
      continue;
    }
    const auto estimates = std::span(drafts_.probabilities).subspan(candidate.begin, candidate.num_chosen);
    candidate.info->estimates.assign(estimates.begin(), estimates.end());
    scheduler.SetDrafts(candidate.request_id,
                        std::span(drafts_.token_ids).subspan(candidate.begin, candidate.num_chosen), candidate.method);
  }
}

void Speculator::Propose() {
  proposed_.Clear();
  if (proposer_ == nullptr) return;
  const auto num_requests = static_cast<int64_t>(requests_.size());
  int64_t depth = 0;
  for (const DraftRequest& request : requests_) depth = std::max(depth, request.max_drafts);
  if (limits_depth_) {
    depth = draft_depth_.Choose(num_requests, depth, step_cost_);
    if (depth == 0) return;
    for (DraftRequest& request : requests_) request.max_drafts = std::min(request.max_drafts, depth);
  } else if (num_steps_to_pause_ > 0) {
    --num_steps_to_pause_;
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  proposer_->Propose(requests_, proposed_);
  propose_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (limits_depth_) draft_depth_.AddTime(depth, propose_seconds_, step_cost_.Estimate(num_requests));
}

void Speculator::CountGain(const SchedulerOutput& step, int64_t num_accepted) {
  const double seconds = std::exchange(propose_seconds_, 0);
  if (seconds == 0 || !config_.adaptive || limits_depth_) return;
  const auto num_requests = static_cast<int64_t>(step.num_scheduled_tokens.size());
  const auto num_drafts = static_cast<int64_t>(step.scheduled_cached_reqs.spec_token_ids.size());
  if (num_requests == 0) return;
  const double plain = step_cost_.Estimate(num_requests);
  if (seconds < kFreeShare * plain) return;
  const double saved = plain * static_cast<double>(num_accepted) / static_cast<double>(num_requests);
  const double spent = step_cost_.Estimate(num_requests + num_drafts) - plain + seconds;
  ++num_gains_;
  gain_ += (saved - spent - gain_) / static_cast<double>(std::min(num_gains_, kGainWindow));
  if (num_gains_ < kGainWindow) return;
  if (gain_ >= 0) {
    pause_length_ = 0;
    return;
  }
  pause_length_ = std::clamp(2 * pause_length_, kMinPause, kMaxPause);
  num_steps_to_pause_ = pause_length_;
  gain_ = 0;
  num_gains_ = 0;
}

void Speculator::CollectRequests(const EngineCoreOutputs& outputs, Scheduler& scheduler) {
  requests_.clear();
  candidates_.clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const EngineCoreOutput& output = outputs[i];
    const Request* request = scheduler.FindRequest(output.request_id);
    const bool continues = output.finish_reason == FinishReason::kNone && request != nullptr;
    auto it = infos_.find(output.request_id);
    if (it == infos_.end()) {
      if (!continues) continue;
      it = infos_.try_emplace(output.request_id).first;
      RequestInfo& info = it->second;
      info.request = request->core();
      info.output_token_ids = request->core()->prior_output_token_ids;
      if (info.request->grammar != nullptr) {
        info.constraint = std::make_unique<OutputConstraint>(*info.request);
        info.forces_tokens = !workers_append_forced_ || request->params().logprobs.has_value();
      }
    }
    RequestInfo& info = it->second;
    info.output_token_ids.insert(info.output_token_ids.end(), output.new_token_ids.begin(), output.new_token_ids.end());
    if (!continues) {
      FinishOne(output.request_id);
      continue;
    }
    Learn(output, info);
    if (output.new_token_ids.empty() || request->status != RequestStatus::kRunning) continue;
    const int64_t max_drafts = std::min(config_.MaxDrafts(), scheduler.MaxDrafts(*request));
    if (max_drafts <= 0) continue;
    requests_.push_back({output.request_id, info.request->prompt_token_ids, info.output_token_ids, max_drafts,
                         &info.request->sampling_params});
    candidates_.push_back({.request_id = output.request_id, .info = &info, .method = config_.method});
  }
}

void Speculator::Finish(std::span<const RequestId> request_ids) {
  for (const RequestId id : request_ids) FinishOne(id);
}

void Speculator::FinishOne(RequestId id) {
  const auto it = infos_.find(id);
  if (it == infos_.end()) return;
  if (proposer_ != nullptr) proposer_->Finish(id, it->second.output_token_ids);
  infos_.erase(it);
}

void Speculator::Learn(const EngineCoreOutput& output, RequestInfo& info) {
  const int64_t num_drafted = output.num_draft_tokens - std::exchange(info.num_draft_tokens, output.num_draft_tokens);
  const int64_t num_accepted = output.num_accepted_draft_tokens -
                               std::exchange(info.num_accepted_draft_tokens, output.num_accepted_draft_tokens);
  num_accepted_ += num_accepted;
  const auto count = std::min(static_cast<size_t>(num_drafted), info.estimates.size());
  if (count > 0) {
    calibration_.Add(std::span(info.estimates).first(count), static_cast<size_t>(num_accepted), info.record);
    for (size_t i = 0; i < count && i <= static_cast<size_t>(num_accepted); ++i) {
      draft_depth_.AddResult(i < static_cast<size_t>(num_accepted));
    }
  }
  info.estimates.clear();
}

void Speculator::FeedConstraint(RequestInfo& info) {
  for (; info.num_fed < info.output_token_ids.size(); ++info.num_fed) {
    info.constraint->Feed(info.output_token_ids[info.num_fed]);
  }
}

bool Speculator::FindForced(RequestInfo& info, int64_t max_drafts) {
  forced_.clear();
  FeedConstraint(info);
  int32_t token = info.constraint->ForcedToken();
  if (token < 0) return false;
  OutputConstraint constraint(*info.constraint);
  for (; token >= 0 && static_cast<int64_t>(forced_.size()) < max_drafts; token = constraint.ForcedToken()) {
    forced_.push_back(token);
    if (!constraint.Feed(token)) break;
  }
  return true;
}

void Speculator::ApplyGrammars() {
  drafts_.Clear();
  for (size_t i = 0; i < requests_.size(); ++i) {
    Candidate& candidate = candidates_[i];
    RequestInfo& info = *candidate.info;
    candidate.begin = drafts_.token_ids.size();
    size_t next = proposed_.offsets[i];
    size_t end = std::min(proposed_.offsets[i + 1], next + static_cast<size_t>(requests_[i].max_drafts));
    for (size_t d = next; d < end; ++d) {
      if (proposed_.token_ids[d] < 0 || proposed_.token_ids[d] >= vocab_size_) end = d;
    }
    if (info.forces_tokens && FindForced(info, requests_[i].max_drafts)) {
      candidate.method = SpeculativeMethod::kGrammar;
      for (const int32_t token : forced_) drafts_.Add(token, 1.0f);
    } else if (info.constraint == nullptr || next == end) {
      for (; next < end; ++next) drafts_.Add(proposed_.token_ids[next], proposed_.probabilities[next]);
    } else {
      FeedConstraint(info);
      OutputConstraint constraint(*info.constraint);
      for (; next < end && constraint.Feed(proposed_.token_ids[next]); ++next) {
        drafts_.Add(proposed_.token_ids[next], proposed_.probabilities[next]);
      }
    }
    drafts_.EndRequest();
    candidate.end = drafts_.token_ids.size();
  }
}

void Speculator::ChooseAdaptively() {
  options_.clear();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    double probability = 1;
    for (size_t d = candidate.begin; d < candidate.end; ++d) {
      probability *= calibration_.Probability(static_cast<double>(drafts_.probabilities[d]), candidate.info->record);
      options_.push_back({i, probability});
    }
  }
  // The probabilities of a request's drafts never increase, so the best n options are a prefix of each request's.
  std::stable_sort(options_.begin(), options_.end(),
                   [](const Option& a, const Option& b) { return a.probability > b.probability; });
  const auto num_requests = static_cast<int64_t>(candidates_.size());
  double expected = static_cast<double>(num_requests);
  // Before the first decode step has been timed, both rates are infinite, and nothing is drafted.
  double best_rate = kMinGain * expected / step_cost_.Estimate(num_requests);
  size_t num_best = 0;
  for (size_t n = 1; n <= options_.size(); ++n) {
    expected += options_[n - 1].probability;
    const double rate = expected / step_cost_.Estimate(num_requests + static_cast<int64_t>(n));
    if (rate > best_rate) {
      best_rate = rate;
      num_best = n;
    }
  }
  for (size_t n = 0; n < num_best; ++n) ++candidates_[options_[n].candidate].num_chosen;
}

}  // namespace vllm
