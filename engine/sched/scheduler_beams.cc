// The Scheduler's part of beam search. See beam_group.h.
#include <algorithm>
#include <utility>

#include "engine/kv_cache/kv_cache_demand.h"
#include "engine/sched/scheduler.h"
#include "kernels/threading/check.h"

namespace vllm {

int64_t Scheduler::MaxBeamTokens(const EngineCoreRequest& request) const {
  return MaxForkTokensThatFit(cache_, static_cast<int64_t>(request.prompt_token_ids.size()), NumSequences(request),
                              MaxChunk(config_));
}

bool Scheduler::AcceptsBeams(const EngineCoreRequest& request, std::string* rejection_reason) const {
  const int64_t width = NumSequences(request);
  const auto num_tokens = static_cast<int64_t>(request.prompt_token_ids.size());
  std::string reason;
  if (kv_cache_.has_recurrent_state()) {
    reason = "beam search does not work with models that have recurrent state";
  } else if (width > config_.max_num_seqs) {
    reason = "beam_width " + std::to_string(width) + " exceeds --max-num-seqs " + std::to_string(config_.max_num_seqs);
  } else if (num_tokens + 1 > MaxBeamTokens(request)) {
    reason = "prompt is " + std::to_string(num_tokens) + " tokens, too many for beam_width " + std::to_string(width) +
             ": the KV cache has " + std::to_string(kv_cache_.num_blocks()) + " blocks of " +
             std::to_string(kv_cache_.block_size()) + " tokens and must also hold one generated token of each beam";
  }
  if (reason.empty()) return true;
  if (rejection_reason != nullptr) *rejection_reason = std::move(reason);
  return false;
}

void Scheduler::StartGroup(Request& seed) {
  // Like other requests, the beams can have one token more than fits, because the last one needs no slot.
  const int64_t max_num_tokens = std::min(max_model_len_, MaxBeamTokens(*seed.core()) + 1);
  const int64_t max_tokens =
      std::min(max_num_tokens - seed.num_prompt_tokens(), seed.params().max_tokens.value_or(max_num_tokens));
  auto group = std::make_unique<BeamGroup>(seed.core(), max_tokens);
  seed.beam_group = group.get();
  group->beams.push_back({.request = &seed});
  beam_groups_.emplace(seed.id(), std::move(group));
}

BeamGroup* Scheduler::FindGroup(RequestId id) const {
  if (const Request* request = Find(id)) return request->beam_group;
  const auto it = beam_groups_.find(id);
  return it == beam_groups_.end() ? nullptr : it->second.get();
}

int64_t Scheduler::NumReservedSeqs() const {
  int64_t sum = 0;
  for (const auto& [id, group] : beam_groups_) {
    if (group->beams[0].request->status != RequestStatus::kRunning) continue;
    sum += static_cast<int64_t>(group->width() - group->beams.size());
  }
  return sum;
}

int64_t Scheduler::NumBeamBlocks(const Request& request) const {
  const BeamGroup* group = request.beam_group;
  if (group == nullptr) return 0;
  const int64_t num_tokens = group->num_prompt_tokens() + std::max<int64_t>(1, group->num_parked_tokens());
  return ExtraForkBlocks(cache_, group->num_prompt_tokens(), num_tokens, static_cast<int64_t>(group->width()),
                         MaxChunk(config_));
}

void Scheduler::TakeBeamLogits(Request& request, const Logprobs* logprobs) {
  BeamGroup& group = *request.beam_group;
  // The logits after the prompt of a resumed group have been used before.
  if (!group.parked.empty() || logprobs == nullptr) return;
  Beam* const beam = group.Find(request);
  VLLM_CHECK(beam != nullptr && !beam->has_top);
  beam->top.Clear();
  beam->top.AppendFirst(*logprobs, 1);
  beam->has_top = true;
}

void Scheduler::AdvanceGroups(EngineCoreOutputs& outputs) {
  for (auto it = beam_groups_.begin(); it != beam_groups_.end();) {
    BeamGroup& group = *it->second;
    ++it;  // now, because the group may end
    const Request& first = *group.beams[0].request;
    if (first.status != RequestStatus::kRunning) continue;
    if (group.IsComplete()) {
      Advance(group, outputs);
    } else if (!group.parked.empty() && first.num_computed_tokens == group.num_prompt_tokens()) {
      Unpark(group);
    }
  }
}

void Scheduler::Advance(BeamGroup& group, EngineCoreOutputs& outputs) {
  const Request& first = *group.beams[0].request;
  if (group.first_token_time == SteadyTime{}) {
    group.first_token_time = now_;
    group.scheduled_time = first.scheduled_time;
    group.num_cached_tokens = std::max<int64_t>(0, first.num_cached_tokens);
  }
  const auto num_sampled = static_cast<int64_t>(group.beams.size());
  num_generation_tokens_ += num_sampled;
  if (first.is_interactive()) num_interactive_tokens_ += num_sampled;

  const BeamSelection& selection = group.Select();
  const bool is_last = first.num_output_tokens() + 1 >= group.max_tokens();
  group.AddResults(selection, is_last);
  if (!is_last && !selection.live.empty()) return ContinueBeams(group, selection);
  for (size_t rank = 0; rank < group.width(); ++rank) {
    if (rank >= group.results.size()) {
      AddGroupOutput(group, rank, FinishReason::kLength, outputs);
      continue;
    }
    BeamHypothesis& result = group.results[rank];
    EngineCoreOutput& output =
        AddGroupOutput(group, rank, result.is_completed ? FinishReason::kStop : FinishReason::kLength, outputs);
    const std::vector<int32_t>& stop_ids = group.params().stop_token_ids;
    const int32_t last = result.token_ids.back();
    if (result.is_completed && std::find(stop_ids.begin(), stop_ids.end(), last) != stop_ids.end()) {
      output.stop_token_id = last;
    }
    output.new_token_ids.swap(result.token_ids);
    output.cumulative_logprob = result.cumulative_logprob;
    output.beam_score = result.score;
  }
  EndGroup(group);
}

void Scheduler::ContinueBeams(BeamGroup& group, const BeamSelection& selection) {
  std::vector<Request*> parents;
  for (const Beam& beam : group.beams) parents.push_back(beam.request);
  // The best child of each beam takes its place, so that it keeps its blocks and the workers' state.
  std::vector<Beam> next(selection.live.size());
  std::vector<bool> has_child(parents.size());
  for (size_t i = 0; i < next.size(); ++i) {
    const BeamCandidate& candidate = selection.live[i];
    next[i].cumulative_logprob = candidate.cumulative_logprob;
    if (has_child[candidate.beam_index]) continue;
    has_child[candidate.beam_index] = true;
    next[i].request = parents[candidate.beam_index];
  }
  group.beams = std::move(next);
  // First, because the forks may use the ids and blocks of these beams.
  for (size_t i = 0; i < parents.size(); ++i) {
    if (!has_child[i]) RemoveBeam(*parents[i]);
  }
  for (size_t i = 0; i < group.beams.size(); ++i) {
    if (group.beams[i].request != nullptr) continue;
    const Request& parent = *parents[selection.live[i].beam_index];
    std::vector<int32_t> token_ids(parent.output_token_ids().begin(), parent.output_token_ids().end());
    token_ids.push_back(selection.live[i].token_id);
    Request* const child = ForkBeam(group, parent, std::move(token_ids), parent.num_computed_tokens);
    group.beams[i].request = child;
  }
  // Last, because the forks copy the tokens of their parents.
  for (size_t i = 0; i < group.beams.size(); ++i) {
    Request& request = *group.beams[i].request;
    if (request.num_tokens() == request.num_computed_tokens) request.AppendOutputToken(selection.live[i].token_id);
  }
}

void Scheduler::Unpark(BeamGroup& group) {
  const std::vector<ParkedBeam> parked = std::exchange(group.parked, {});
  Request& seed = *group.beams[0].request;
  group.beams[0].cumulative_logprob = parked[0].cumulative_logprob;
  for (size_t i = 1; i < parked.size(); ++i) {
    Request* const child = ForkBeam(group, seed, parked[i].token_ids, group.num_prompt_tokens());
    group.beams.push_back({.request = child, .cumulative_logprob = parked[i].cumulative_logprob});
  }
  for (const int32_t token_id : parked[0].token_ids) seed.AppendOutputToken(token_id);
}

Request* Scheduler::ForkBeam(BeamGroup& group, const Request& parent, std::vector<int32_t> output_token_ids,
                             int64_t num_tokens) {
  auto owned = std::make_unique<Request>(group.MakeCore(group.FreeSlot(), std::move(output_token_ids)));
  Request* const child = owned.get();
  child->beam_group = &group;
  child->status = RequestStatus::kRunning;
  child->num_computed_tokens = num_tokens;
  child->num_preemptions = parent.num_preemptions;
  child->num_cached_tokens = parent.num_cached_tokens;
  child->scheduled_time = parent.scheduled_time;
  child->ReserveTokens(max_num_tokens_, kv_cache_.block_size());
  kv_cache_.Fork(parent, *child, num_tokens);
  child->num_blocks_sent = static_cast<int64_t>(kv_cache_.Blocks(child->id()).size());
  requests_.emplace(child->id(), std::move(owned));
  // The policy may preempt the last running request first, so a fork must not come after later requests.
  running_.insert(std::find(running_.begin(), running_.end(), &parent) + 1, child);
  return child;
}

void Scheduler::RemoveBeam(Request& beam) {
  if (beam.status == RequestStatus::kRunning) {
    std::erase(running_, &beam);
  } else if (beam.status == RequestStatus::kWaitingForRemoteKVs) {
    std::erase(loading_, &beam);
  } else {
    waiting_->Remove(&beam);
  }
  std::erase(rolled_back_req_ids_, beam.id());
  kv_cache_.Free(beam);
  if (beam.sent_to_workers) finished_req_ids_.push_back(beam.id());
  requests_.erase(beam.id());
}

void Scheduler::PreemptGroup(BeamGroup& group, size_t& request_index, int64_t& token_budget) {
  for (const Beam& beam : group.beams) {
    Request& request = *beam.request;
    const auto tokens = request.output_token_ids();
    group.parked.push_back({{tokens.begin(), tokens.end()}, beam.cumulative_logprob});
    Evict(request, request_index, token_budget);
    // In this step, because a new beam may get the id before the next one.
    if (request.sent_to_workers) output_.finished_req_ids.push_back(request.id());
    requests_.erase(request.id());
  }
  ++group.num_preemptions;
  ++num_preemptions_;
  auto owned = std::make_unique<Request>(group.core());
  Request* const seed = owned.get();
  seed->beam_group = &group;
  seed->status = RequestStatus::kPreempted;
  seed->num_preemptions = group.num_preemptions;
  seed->num_cached_tokens = group.num_cached_tokens;
  seed->scheduled_time = group.scheduled_time;
  seed->ReserveTokens(max_num_tokens_, kv_cache_.block_size());
  group.beams.clear();
  group.beams.push_back({.request = seed});
  requests_.emplace(seed->id(), std::move(owned));
  waiting_->Prepend(seed);
}

void Scheduler::FailGroup(BeamGroup& group, const std::string& error, EngineCoreOutputs& outputs) {
  for (size_t slot = 0; slot < group.width(); ++slot) {
    kv_cache_.EvictPublishedBy(group.first_id() + static_cast<RequestId>(slot));
    AddGroupOutput(group, slot, FinishReason::kError, outputs).error = error;
  }
  EndGroup(group);
}

void Scheduler::AbortGroupWithOutput(BeamGroup& group, EngineCoreOutputs& outputs) {
  for (size_t rank = 0; rank < group.width(); ++rank) AddGroupOutput(group, rank, FinishReason::kAbort, outputs);
  EndGroup(group);
}

EngineCoreOutput& Scheduler::AddGroupOutput(const BeamGroup& group, size_t rank, FinishReason reason,
                                            EngineCoreOutputs& outputs) const {
  EngineCoreOutput& output = outputs.Add(group.first_id() + static_cast<RequestId>(rank));
  output.finish_reason = reason;
  output.num_cached_tokens = group.num_cached_tokens;
  // The front end adds these up.
  output.num_preemptions = rank == 0 ? group.num_preemptions : 0;
  output.scheduled_time = group.scheduled_time;
  output.first_token_time = group.first_token_time;
  output.last_token_time = group.first_token_time == SteadyTime{} ? SteadyTime{} : now_;
  return output;
}

void Scheduler::EndGroup(BeamGroup& group) {
  num_interactive_ -= group.core()->interactive ? 1 : 0;
  for (const Beam& beam : group.beams) RemoveBeam(*beam.request);
  beam_groups_.erase(group.first_id());
}

std::string Scheduler::CheckGroups() const {
  size_t num_beams = 0;
  for (const auto& [id, group] : beam_groups_) {
    const std::string name = "beam group " + std::to_string(id) + ": ";
    if (group->beams.empty() || group->beams.size() > group->width()) return name + "wrong number of beams";
    if (!group->parked.empty() && group->beams.size() > 1) return name + "parked and live beams";
    num_beams += group->beams.size();
    for (const Beam& beam : group->beams) {
      if (Find(beam.request->id()) != beam.request) return name + "unknown beam";
      if (beam.request->beam_group != group.get()) return name + "beam of another group";
      if (beam.request->num_tokens() != group->beams[0].request->num_tokens()) return name + "unequal lengths";
    }
  }
  for (const auto& [id, request] : requests_) num_beams -= request->beam_group != nullptr ? 1 : 0;
  return num_beams == 0 ? std::string() : "beam groups: not all beams belong to one";
}

}  // namespace vllm
