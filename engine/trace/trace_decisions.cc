#include "engine/trace/trace_decisions.h"

#include <algorithm>
#include <span>

namespace vllm {
namespace {

constexpr size_t kMaxListedIds = 8;

std::string IdsText(std::span<const RequestId> ids) {
  if (ids.empty()) return "none";
  std::string text;
  for (const RequestId id : ids.first(std::min(ids.size(), kMaxListedIds))) {
    text += (text.empty() ? "" : ", ") + std::to_string(id);
  }
  return ids.size() > kMaxListedIds ? text + ", ... (" + std::to_string(ids.size()) + " in all)" : text;
}

std::string Both(const std::string& what, const std::string& recorded, const std::string& replayed) {
  return what + ": recorded " + recorded + ", replayed " + replayed;
}

std::string ScheduledText(const std::vector<TraceScheduled>& scheduled, size_t index) {
  if (index >= scheduled.size()) return "none";
  const TraceScheduled& s = scheduled[index];
  std::string text = "request " + std::to_string(s.request_id) + " with " + std::to_string(s.num_tokens) + " tokens";
  if (s.kind != ScheduledKind::kRunning) {
    text += s.kind == ScheduledKind::kNew ? ", new" : ", resumed";
    text += " after " + std::to_string(s.num_computed_tokens) + " cached tokens";
  }
  return text + " and " + std::to_string(s.num_block_ids) + " new blocks";
}

std::string EndText(int64_t num_tokens, SampledEnd end) {
  constexpr const char* kNames[] = {"continues", "ends with EOS", "ends with a stop token", "ends by its length",
                                    "ends with an error"};
  return std::to_string(num_tokens) + " tokens, " + kNames[static_cast<size_t>(end)];
}

}  // namespace

void SetTraceStep(const SchedulerOutput& output, int64_t num_blocks_in_use, TraceStep& step) {
  step.num_blocks_in_use = num_blocks_in_use;
  step.finished_req_ids.assign(output.finished_req_ids.begin(), output.finished_req_ids.end());
  step.preempted_req_ids.assign(output.preempted_req_ids.begin(), output.preempted_req_ids.end());
  step.scheduled.clear();
  step.block_ids.clear();
  // Both lists are in the order of num_scheduled_tokens.
  size_t new_index = 0;
  size_t cached_index = 0;
  const CachedRequestData& cached = output.scheduled_cached_reqs;
  for (const NumScheduledTokens& scheduled : output.num_scheduled_tokens) {
    TraceScheduled& entry = step.scheduled.emplace_back();
    entry.request_id = scheduled.request_id;
    entry.num_tokens = scheduled.num_tokens;
    std::span<const int32_t> block_ids;
    if (cached_index < cached.size() && cached.request_ids[cached_index] == scheduled.request_id) {
      if (cached.resumed_from_preemption[cached_index] != 0) {
        entry.kind = ScheduledKind::kResumed;
        entry.num_computed_tokens = cached.num_computed_tokens[cached_index];
      }
      block_ids = cached.NewBlocks(cached_index++);
    } else {
      const NewRequestData& data = output.scheduled_new_reqs[new_index++];
      entry.kind = ScheduledKind::kNew;
      entry.num_computed_tokens = data.num_computed_tokens;
      block_ids = data.block_ids;
    }
    entry.num_block_ids = static_cast<int64_t>(block_ids.size());
    step.block_ids.insert(step.block_ids.end(), block_ids.begin(), block_ids.end());
  }
}

SampledEnd SampledEndOf(const EngineCoreOutput& output) {
  switch (output.finish_reason) {
    case FinishReason::kNone:
      return SampledEnd::kContinues;
    case FinishReason::kStop:
      return output.stop_token_id ? SampledEnd::kStopToken : SampledEnd::kEos;
    case FinishReason::kLength:
      return SampledEnd::kLength;
    default:
      return SampledEnd::kError;
  }
}

std::string StepDifference(const TraceStep& recorded, const TraceStep& replayed) {
  if (recorded.finished_req_ids != replayed.finished_req_ids) {
    return Both("finished requests", IdsText(recorded.finished_req_ids), IdsText(replayed.finished_req_ids));
  }
  if (recorded.preempted_req_ids != replayed.preempted_req_ids) {
    return Both("preempted requests", IdsText(recorded.preempted_req_ids), IdsText(replayed.preempted_req_ids));
  }
  size_t block_index = 0;
  for (size_t i = 0; i < std::max(recorded.scheduled.size(), replayed.scheduled.size()); ++i) {
    if (i >= recorded.scheduled.size() || i >= replayed.scheduled.size() ||
        recorded.scheduled[i] != replayed.scheduled[i]) {
      return Both("scheduled request number " + std::to_string(i + 1), ScheduledText(recorded.scheduled, i),
                  ScheduledText(replayed.scheduled, i));
    }
    for (int64_t b = 0; b < recorded.scheduled[i].num_block_ids; ++b, ++block_index) {
      if (recorded.block_ids[block_index] == replayed.block_ids[block_index]) continue;
      return Both("request " + std::to_string(recorded.scheduled[i].request_id),
                  "block " + std::to_string(recorded.block_ids[block_index]),
                  "block " + std::to_string(replayed.block_ids[block_index]));
    }
  }
  if (recorded.num_blocks_in_use != replayed.num_blocks_in_use) {
    return Both("KV blocks in use", std::to_string(recorded.num_blocks_in_use),
                std::to_string(replayed.num_blocks_in_use));
  }
  return {};
}

std::string UpdateDifference(const TraceUpdate& recorded, const EngineCoreOutputs& replayed) {
  for (size_t i = 0; i < std::max(recorded.sampled.size(), replayed.size()); ++i) {
    if (i >= replayed.size()) {
      return Both("result of request " + std::to_string(recorded.sampled[i].request_id),
                  EndText(recorded.sampled[i].num_tokens, recorded.sampled[i].end), "none");
    }
    const auto num_tokens = static_cast<int64_t>(replayed[i].new_token_ids.size());
    const std::string replayed_text = EndText(num_tokens, SampledEndOf(replayed[i]));
    if (i >= recorded.sampled.size()) {
      return Both("result of request " + std::to_string(replayed[i].request_id), "none", replayed_text);
    }
    const TraceSampled& sampled = recorded.sampled[i];
    if (sampled.request_id != replayed[i].request_id) {
      return Both("result number " + std::to_string(i + 1), "request " + std::to_string(sampled.request_id),
                  "request " + std::to_string(replayed[i].request_id));
    }
    if (sampled.num_tokens != num_tokens || sampled.end != SampledEndOf(replayed[i])) {
      return Both("request " + std::to_string(sampled.request_id), EndText(sampled.num_tokens, sampled.end),
                  replayed_text);
    }
  }
  return {};
}

}  // namespace vllm
