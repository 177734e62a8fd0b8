#include "engine/sched/beam_group.h"

#include <algorithm>
#include <utility>

namespace vllm {

BeamGroup::BeamGroup(EngineCoreRequestPtr request, int64_t max_tokens)
    : core_(std::move(request)), max_tokens_(max_tokens) {
  if (params().ignore_eos) return;
  end_token_ids_ = params().stop_token_ids;
  if (params().eos_token_id) end_token_ids_.push_back(*params().eos_token_id);
}

Beam* BeamGroup::Find(const Request& request) {
  const auto it = std::find_if(beams.begin(), beams.end(), [&](const Beam& b) { return b.request == &request; });
  return it == beams.end() ? nullptr : &*it;
}

bool BeamGroup::IsComplete() const {
  return parked.empty() && std::all_of(beams.begin(), beams.end(), [](const Beam& beam) { return beam.has_top; });
}

const BeamSelection& BeamGroup::Select() {
  rows_.clear();
  for (const Beam& beam : beams) rows_.push_back({beam.cumulative_logprob, &beam.top});
  SelectBeams(rows_, width(), end_token_ids_, selection_);
  return selection_;
}

void BeamGroup::AddResults(const BeamSelection& selection, bool is_last) {
  for (const BeamCandidate& candidate : selection.completed) AddResult(candidate, /*is_completed=*/true);
  if (!is_last) return;
  for (const BeamCandidate& candidate : selection.live) AddResult(candidate, /*is_completed=*/false);
}

void BeamGroup::AddResult(const BeamCandidate& candidate, bool is_completed) {
  const auto tokens = beams[candidate.beam_index].request->output_token_ids();
  BeamHypothesis hypothesis;
  hypothesis.cumulative_logprob = candidate.cumulative_logprob;
  hypothesis.score = BeamScore(candidate.cumulative_logprob, static_cast<int64_t>(tokens.size()) + 1,
                               params().length_penalty.value_or(1.0));
  if (results.size() == width() && hypothesis.score <= results.back().score) return;
  hypothesis.is_completed = is_completed;
  hypothesis.token_ids.reserve(tokens.size() + 1);
  hypothesis.token_ids.assign(tokens.begin(), tokens.end());
  hypothesis.token_ids.push_back(candidate.token_id);
  AddHypothesis(std::move(hypothesis), width(), results);
}

EngineCoreRequestPtr BeamGroup::MakeCore(size_t slot, std::vector<int32_t> output_token_ids) const {
  auto core = std::make_shared<EngineCoreRequest>(*core_);
  core->request_id = first_id() + static_cast<RequestId>(slot);
  core->prior_output_token_ids = std::move(output_token_ids);
  return core;
}

size_t BeamGroup::FreeSlot() const {
  std::vector<bool> used(width() + 1);
  for (const Beam& beam : beams) {
    if (beam.request != nullptr) used[static_cast<size_t>(beam.request->id() - first_id())] = true;
  }
  return static_cast<size_t>(std::find(used.begin(), used.end(), false) - used.begin());
}

}  // namespace vllm
