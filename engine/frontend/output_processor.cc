#include "engine/frontend/output_processor.h"

#include <algorithm>
#include <utility>

namespace vllm {

void OutputProcessor::AddRequest(std::unique_ptr<ParentRequest> parent, const OutputMemory& memory) {
  ParentRequest& added = *parent;
  metrics_.num_prompt_tokens += static_cast<int64_t>(added.prompt_token_ids().size());
  parents_.emplace(added.request_id(), std::move(parent));
  waiting_.push_back({added.request_id(), memory});
  StartWaiting();
}

bool OutputProcessor::HasRoomFor(const OutputMemory& memory) const {
  if (started_.empty()) return true;
  int64_t record_bytes = memory.record_bytes;
  for (const auto& [request_id, other] : started_) record_bytes = std::max(record_bytes, other.record_bytes);
  return memory.held_bytes <= max_output_memory_ - held_bytes_ &&
         record_bytes <= max_output_memory_ - held_bytes_ - memory.held_bytes;
}

void OutputProcessor::StartWaiting() {
  while (!waiting_.empty() && HasRoomFor(waiting_.front().memory)) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    held_bytes_ += next.memory.held_bytes;
    started_.emplace(next.request_id, next.memory);
    SubmitAllowed(*parents_.at(next.request_id));
  }
}

void OutputProcessor::EraseParent(const std::string& request_id) {
  const std::string id = request_id;  // it may belong to the parent
  parents_.erase(id);
  if (const auto it = started_.find(id); it != started_.end()) {
    held_bytes_ -= it->second.held_bytes;
    started_.erase(it);
  } else {
    std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.request_id == id; });
  }
  StartWaiting();
}

void OutputProcessor::SubmitAllowed(ParentRequest& parent) {
  while (parent.HasChildToSubmit()) {
    const int64_t index = parent.num_submitted();
    to_submit_.push_back(parent.MakeNextChild());
    children_.try_emplace(parent.child_id(index), parent, index, tokenizer_);
  }
}

void OutputProcessor::RemoveRequest(const std::string& request_id) {
  const auto it = parents_.find(request_id);
  if (it == parents_.end()) return;
  for (int64_t i = 0; i < it->second->num_submitted(); ++i) children_.erase(it->second->child_id(i));
  EraseParent(request_id);
}

void OutputProcessor::BeginRound() {
  for (RequestOutput& output : outputs_) {
    // Buffers of a few tokens are worth keeping; those of a whole answer with its logprobs would add up to more than
    // requests may hold.
    constexpr size_t kMaxSpareEntries = 4096;
    size_t entries = output.prompt_logprobs.token_ids.capacity();
    for (const CompletionOutput& completion : output.outputs) entries += completion.logprobs.token_ids.capacity();
    if (entries <= kMaxSpareEntries) spare_outputs_.push_back(std::move(output));
  }
  outputs_.clear();
  outputs_.swap(early_outputs_);
}

void OutputProcessor::FillPrompt(ParentRequest& parent, RequestOutput& output) {
  if (parent.params().output_kind == RequestOutputKind::kDelta) {
    if (parent.prompt_given_out) {
      output.prompt_token_ids.clear();
      output.prompt_logprobs.Clear();
      return;
    }
    parent.prompt_given_out = true;
  }
  output.prompt_token_ids = parent.prompt_token_ids();
  output.prompt_logprobs = parent.prompt_logprobs;
}

RequestOutput OutputProcessor::MakeOutput(ParentRequest& parent, bool finished) {
  RequestOutput output;
  if (!spare_outputs_.empty()) {
    output = std::move(spare_outputs_.back());
    spare_outputs_.pop_back();
  }
  output.request_id = parent.request_id();
  FillPrompt(parent, output);
  output.finished = finished;
  output.num_cached_tokens = parent.num_cached_tokens;
  output.error = parent.error;
  return output;
}

void OutputProcessor::Process(const EngineCoreOutputs& engine_core_outputs) {
  for (size_t i = 0; i < engine_core_outputs.size(); ++i) ProcessOne(engine_core_outputs[i]);
}

void OutputProcessor::ProcessOne(const EngineCoreOutput& output) {
  const auto it = children_.find(output.request_id);
  // Aborted meanwhile, or ended by a stop string that the engine has not heard of yet.
  if (it == children_.end()) return;
  RequestState& state = it->second.state;
  ParentRequest& parent = *it->second.parent;
  const int64_t index = parent.child_index(output.request_id);

  const int64_t tokens_before = state.metrics().num_generation_tokens;
  state.Update(output);
  metrics_.num_generation_tokens += state.metrics().num_generation_tokens - tokens_before;
  if (index == 0) {
    if (!output.prompt_logprobs.empty()) parent.prompt_logprobs = output.prompt_logprobs;
    if (tokens_before == 0) {
      parent.num_cached_tokens = output.num_cached_tokens;
      metrics_.num_cached_tokens += output.num_cached_tokens;
    }
  }
  if (parent.error.empty()) parent.error = output.error;
  // The engine does not see text: a sequence that a stop string has ended still runs there.
  if (state.finished() && output.finish_reason == FinishReason::kNone) to_abort_.push_back(output.request_id);

  const bool collect = parent.params().output_kind == RequestOutputKind::kFinalOnly && parent.n() > 1;
  const bool last = state.finished() && parent.CountFinished();
  if (state.finished()) {
    metrics_.RecordFinished(state.finish_reason(), state.metrics());
    JoinMetrics(state.metrics(), parent.finished_metrics);
  }
  if (collect) {
    if (state.finished()) state.FillOutput(parent.collected.emplace_back());
    if (last) {
      RequestOutput request_output = MakeOutput(parent, true);
      request_output.outputs.swap(parent.collected);
      request_output.metrics = parent.finished_metrics;
      std::sort(request_output.outputs.begin(), request_output.outputs.end(),
                [](const auto& a, const auto& b) { return a.index < b.index; });
      outputs_.push_back(std::move(request_output));
    }
  } else if (state.finished() ||
             (parent.params().output_kind != RequestOutputKind::kFinalOnly && !output.new_token_ids.empty())) {
    RequestOutput request_output = MakeOutput(parent, last);
    request_output.outputs.resize(1);
    state.FillOutput(request_output.outputs.front());
    request_output.metrics = state.metrics();
    outputs_.push_back(std::move(request_output));
  }
  const bool first_has_begun = index == 0 && (state.has_tokens() || state.finished());
  if (state.finished()) children_.erase(it);
  if (last) {
    EraseParent(parent.request_id());
  } else if (first_has_begun) {
    parent.ReleaseChildren();
    SubmitAllowed(parent);
  }
}

RequestOutput OutputProcessor::EndRequest(ParentRequest& parent, FinishReason reason, const std::string& error) {
  if (parent.error.empty()) parent.error = error;
  RequestOutput output = MakeOutput(parent, true);
  output.outputs.clear();
  output.outputs.swap(parent.collected);
  for (int64_t index = 0; index < parent.n(); ++index) {
    if (index >= parent.num_submitted()) {
      CompletionOutput& completion = output.outputs.emplace_back();
      completion.index = index;
      completion.finish_reason = reason;
      continue;
    }
    const auto it = children_.find(parent.child_id(index));
    if (it == children_.end()) continue;
    RequestState& state = it->second.state;
    state.Finish(reason);
    state.FillOutput(output.outputs.emplace_back());
    metrics_.RecordFinished(reason, state.metrics());
    JoinMetrics(state.metrics(), parent.finished_metrics);
    if (reason == FinishReason::kAbort) to_abort_.push_back(it->first);
    children_.erase(it);
  }
  std::sort(output.outputs.begin(), output.outputs.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  output.metrics = parent.finished_metrics;
  return output;
}

void OutputProcessor::Abort(const std::string& request_id) {
  const auto it = parents_.find(request_id);
  if (it == parents_.end()) return;
  early_outputs_.push_back(EndRequest(*it->second, FinishReason::kAbort, ""));
  EraseParent(request_id);
}

void OutputProcessor::FailAll(const std::string& cause) {
  std::vector<ParentRequest*> in_order;
  for (const auto& [request_id, parent] : parents_) in_order.push_back(parent.get());
  std::sort(in_order.begin(), in_order.end(), [](auto* a, auto* b) { return a->child_id(0) < b->child_id(0); });
  for (ParentRequest* parent : in_order) outputs_.push_back(EndRequest(*parent, FinishReason::kError, cause));
  parents_.clear();
  waiting_.clear();
  started_.clear();
  held_bytes_ = 0;
  to_submit_.clear();
  to_abort_.clear();
}

void OutputProcessor::TakeToSubmit(std::vector<EngineCoreRequestPtr>& requests) {
  requests.clear();
  requests.swap(to_submit_);
}

void OutputProcessor::TakeToAbort(std::vector<RequestId>& request_ids) {
  request_ids.clear();
  request_ids.swap(to_abort_);
}

}  // namespace vllm
