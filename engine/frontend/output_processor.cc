#include "engine/frontend/output_processor.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vllm {
namespace {

void SortByIndex(std::vector<CompletionOutput>& outputs) {
  std::sort(outputs.begin(), outputs.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
}

// Sorts the outputs. With best_of, ranks them and keeps the best.
void ArrangeOutputs(const ParentRequest& parent, std::vector<CompletionOutput>& outputs) {
  SortByIndex(outputs);
  if (!parent.params.best_of) return;
  for (CompletionOutput& output : outputs) output.score = output.cumulative_logprob;
  std::stable_sort(outputs.begin(), outputs.end(), [](const auto& a, const auto& b) { return *a.score > *b.score; });
  if (static_cast<int64_t>(outputs.size()) > parent.num_returned) {
    outputs.resize(static_cast<size_t>(parent.num_returned));
  }
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].index = static_cast<int64_t>(i);
}

// With n > 1, kFinalOnly returns all sequences in one output. Beam search and best_of do so for every output kind.
bool CollectsSequences(const ParentRequest& parent) {
  return parent.params.use_beam_search || parent.params.best_of ||
         (parent.params.output_kind == RequestOutputKind::kFinalOnly && parent.params.n > 1);
}

// Returns true if beam search found fewer sequences than beam_width, and the engine has ended this one for that reason.
bool IsMissingBeam(const ParentRequest& parent, const RequestState& state) {
  return parent.params.use_beam_search && state.finish_reason() == FinishReason::kLength && !state.has_tokens();
}

}  // namespace

void OutputProcessor::AddRequest(std::unique_ptr<ParentRequest> parent) {
  ParentRequest& added = *parent;
  parents_.emplace(added.request_id, std::move(parent));
  metrics_.num_prompt_tokens += static_cast<int64_t>(added.prompt_token_ids.size());
  for (int64_t index = 0; index < added.params.n; ++index) {
    children_.try_emplace(added.child_id(index), added, index, tokenizer_);
  }
}

void OutputProcessor::RemoveRequest(const std::string& request_id) {
  const auto parent = parents_.find(request_id);
  if (parent == parents_.end()) return;
  for (int64_t i = 0; i < parent->second->params.n; ++i) children_.erase(parent->second->child_id(i));
  parents_.erase(parent);
}

const ProcessedOutputs& OutputProcessor::Process(const EngineCoreOutputs& engine_core_outputs) {
  RecycleOutputs();
  processed_.reqs_to_abort.clear();
  processed_.request_outputs.swap(pending_outputs_);
  for (size_t i = 0; i < engine_core_outputs.size(); ++i) ProcessOne(engine_core_outputs[i]);
  return processed_;
}

void OutputProcessor::RecycleOutputs() {
  for (RequestOutput& output : processed_.request_outputs) {
    // Keep only small buffers. The buffers of long answers with logprobs could add up to more memory than the outputs
    // of requests may take.
    constexpr size_t kMaxSpareEntries = 4096;
    size_t num_entries = output.prompt_logprobs.token_ids.capacity();
    for (const CompletionOutput& completion : output.outputs) num_entries += completion.logprobs.token_ids.capacity();
    if (num_entries <= kMaxSpareEntries) spare_outputs_.push_back(std::move(output));
  }
  processed_.request_outputs.clear();
}

void OutputProcessor::ProcessOne(const EngineCoreOutput& output) {
  const auto found = children_.find(output.request_id);
  // The sequence was aborted, or a stop string has ended it and the engine has not processed the abort yet.
  if (found == children_.end()) return;
  Child& child = found->second;
  ParentRequest& parent = *child.parent;
  const bool request_finished = UpdateState(output, child);
  EmitOutput(output, child, request_finished);
  if (child.state.finished()) children_.erase(found);
  if (request_finished) parents_.erase(std::string(parent.request_id));
}

bool OutputProcessor::UpdateState(const EngineCoreOutput& output, Child& child) {
  RequestState& state = child.state;
  ParentRequest& parent = *child.parent;
  const int64_t tokens_before = state.metrics().num_generation_tokens;
  state.Update(output);
  metrics_.num_generation_tokens += state.metrics().num_generation_tokens - tokens_before;
  if (parent.child_index(output.request_id) == 0) {
    if (!output.prompt_logprobs.empty()) parent.prompt_logprobs = output.prompt_logprobs;
    if (tokens_before == 0) {
      parent.num_cached_tokens = output.num_cached_tokens;
      metrics_.num_cached_tokens += output.num_cached_tokens;
    }
  }
  if (parent.error.empty()) parent.error = output.error;
  if (!state.finished()) return false;
  if (output.finish_reason == FinishReason::kNone) processed_.reqs_to_abort.push_back(output.request_id);
  metrics_.RecordFinished(state.finish_reason(), state.metrics());
  JoinMetrics(state.metrics(), parent.finished_metrics);
  return parent.CountFinished();
}

void OutputProcessor::EmitOutput(const EngineCoreOutput& output, Child& child, bool request_finished) {
  RequestState& state = child.state;
  ParentRequest& parent = *child.parent;
  if (CollectsSequences(parent)) {
    if (state.finished() && !IsMissingBeam(parent, state)) state.FillOutput(parent.collected.emplace_back());
    if (!request_finished) return;
    RequestOutput request_output = MakeOutput(parent, true);
    request_output.outputs.swap(parent.collected);
    request_output.metrics = parent.finished_metrics;
    ArrangeOutputs(parent, request_output.outputs);
    processed_.request_outputs.push_back(std::move(request_output));
    return;
  }
  const bool streams = parent.params.output_kind != RequestOutputKind::kFinalOnly && !output.new_token_ids.empty();
  if (!state.finished() && !streams) return;
  RequestOutput request_output = MakeOutput(parent, request_finished);
  request_output.outputs.resize(1);
  state.FillOutput(request_output.outputs.front());
  request_output.pooled = output.pooled;
  request_output.metrics = state.metrics();
  processed_.request_outputs.push_back(std::move(request_output));
}

RequestOutput OutputProcessor::MakeOutput(ParentRequest& parent, bool finished) {
  RequestOutput output;
  if (!spare_outputs_.empty()) {
    output = std::move(spare_outputs_.back());
    spare_outputs_.pop_back();
  }
  output.request_id = parent.request_id;
  FillPrompt(parent, output);
  output.finished = finished;
  output.rejected = false;
  output.pooled.clear();
  output.num_cached_tokens = parent.num_cached_tokens;
  output.error = parent.error;
  return output;
}

void OutputProcessor::FillPrompt(ParentRequest& parent, RequestOutput& output) {
  if (parent.params.output_kind == RequestOutputKind::kDelta) {
    if (parent.prompt_returned) {
      output.prompt_token_ids.clear();
      output.prompt_logprobs.Clear();
      return;
    }
    parent.prompt_returned = true;
  }
  output.prompt_token_ids = parent.prompt_token_ids;
  output.prompt_logprobs = parent.prompt_logprobs;
}

RequestOutput OutputProcessor::EndRequest(ParentRequest& parent, FinishReason reason, const std::string& error) {
  if (parent.error.empty()) parent.error = error;
  RequestOutput output = MakeOutput(parent, true);
  output.outputs.clear();
  output.outputs.swap(parent.collected);
  for (int64_t index = 0; index < parent.params.n; ++index) {
    const auto found = children_.find(parent.child_id(index));
    if (found == children_.end()) continue;
    RequestState& state = found->second.state;
    state.Finish(reason);
    state.FillOutput(output.outputs.emplace_back());
    metrics_.RecordFinished(reason, state.metrics());
    JoinMetrics(state.metrics(), parent.finished_metrics);
    children_.erase(found);
  }
  ArrangeOutputs(parent, output.outputs);
  output.metrics = parent.finished_metrics;
  return output;
}

std::vector<RequestId> OutputProcessor::AbortRequest(const std::string& request_id) {
  std::vector<RequestId> unfinished;
  const auto found = parents_.find(request_id);
  if (found == parents_.end()) return unfinished;
  ParentRequest& parent = *found->second;
  for (int64_t index = 0; index < parent.params.n; ++index) {
    if (children_.contains(parent.child_id(index))) unfinished.push_back(parent.child_id(index));
  }
  pending_outputs_.push_back(EndRequest(parent, FinishReason::kAbort, ""));
  parents_.erase(found);
  return unfinished;
}

bool OutputProcessor::SetConstraint(const std::string& request_id, const EngineCoreRequest& sequence) {
  const ParentRequest& parent = *parents_.at(request_id);
  bool is_allowed = true;
  for (int64_t index = 0; index < parent.params.n; ++index) {
    is_allowed = children_.at(parent.child_id(index)).state.SetConstraint(sequence) && is_allowed;
  }
  return is_allowed;
}

void OutputProcessor::RejectRequest(const std::string& request_id, const std::string& error) {
  ParentRequest& parent = *parents_.at(request_id);
  parent.error = error;
  RequestOutput output = MakeOutput(parent, true);
  output.rejected = true;
  output.outputs.clear();
  for (int64_t index = 0; index < parent.params.n; ++index) {
    RequestState& state = children_.at(parent.child_id(index)).state;
    state.Finish(FinishReason::kError);
    state.FillOutput(output.outputs.emplace_back());
  }
  output.metrics = parent.finished_metrics;
  metrics_.num_prompt_tokens -= static_cast<int64_t>(parent.prompt_token_ids.size());
  pending_outputs_.push_back(std::move(output));
  RemoveRequest(request_id);
}

void OutputProcessor::FailAll(const std::string& cause) {
  std::vector<ParentRequest*> in_order;
  for (const auto& [request_id, parent] : parents_) in_order.push_back(parent.get());
  std::ranges::sort(in_order, {}, &ParentRequest::first_child_id);
  for (ParentRequest* parent : in_order) {
    processed_.request_outputs.push_back(EndRequest(*parent, FinishReason::kError, cause));
  }
  parents_.clear();
  processed_.reqs_to_abort.clear();
}

}  // namespace vllm
