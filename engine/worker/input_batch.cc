#include "engine/worker/input_batch.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "engine/structured_output/tool_calls/tool_call_constraint.h"

namespace vllm {

InputBatch::InputBatch(int64_t max_num_tokens, int64_t max_model_len, int64_t block_size, size_t num_groups)
    : max_model_len_(max_model_len), block_size_(block_size) {
  const auto rows = static_cast<size_t>(max_num_tokens);
  entries_.reserve(rows);
  token_ids_.reserve(rows);
  positions_.reserve(rows);
  token_type_ids_.reserve(rows);
  lora_slots_.reserve(rows);
  attention_.groups.resize(num_groups);
  attention_.rows.reserve(rows);
  for (AttentionGroup& group : attention_.groups) {
    group.slot_mapping.reserve(rows);
    group.sequences.reserve(rows);
  }
}

CachedRequestState& InputBatch::StateOf(RequestId request_id) {
  const auto it = states_.find(request_id);
  if (it == states_.end()) throw std::logic_error("input batch: unknown request " + std::to_string(request_id));
  return *it->second;
}

void InputBatch::RemoveDrafts() {
  for (const BatchEntry& entry : entries_) {
    CachedRequestState& state = *entry.state;
    state.token_ids.resize(static_cast<size_t>(state.num_tokens()));
    state.num_drafts = 0;
  }
}

void InputBatch::Update(const SchedulerOutput& scheduler_output) {
  RemoveDrafts();
  entries_.clear();
  for (const RequestId id : scheduler_output.finished_req_ids) states_.erase(id);

  for (const NewRequestData& data : scheduler_output.scheduled_new_reqs) {
    auto state = std::make_unique<CachedRequestState>();
    state->request = data.request;
    const std::vector<int32_t>& prompt = data.request->prompt_token_ids;
    const int64_t max_tokens = data.request->sampling_params.max_tokens.value_or(max_model_len_);
    const int64_t limit = std::min(max_model_len_, static_cast<int64_t>(prompt.size()) + max_tokens);
    state->token_ids.reserve(static_cast<size_t>(std::max(limit, static_cast<int64_t>(prompt.size()))));
    state->token_ids.assign(prompt.begin(), prompt.end());
    const std::vector<int32_t>& prior = data.request->prior_output_token_ids;
    state->token_ids.insert(state->token_ids.end(), prior.begin(), prior.end());
    if (data.request->sampling_params.thinking_token_budget) {
      const auto& constraint = data.request->sampling_params.structured_outputs;
      state->thinking = std::make_unique<ThinkingTracker>(data.request->reasoning_format, prompt,
                                                          constraint && ConstrainsHarmony(*constraint));
    }
    if (data.request->grammar != nullptr) state->constraint = std::make_unique<OutputConstraint>(*data.request);
    for (const int32_t id : prior) state->FeedOutput(id);
    state->block_ids.resize(attention_.groups.size());
    for (std::vector<int32_t>& table : state->block_ids) table.reserve(static_cast<size_t>(limit / block_size_ + 1));
    AddBlocks(data.block_ids, *state);
    state->num_computed_tokens = data.num_computed_tokens;
    state->state_block_ids = data.state_block_ids;
    state->num_state_tokens = data.num_computed_tokens;
    states_[data.request->request_id] = std::move(state);
  }

  const CachedRequestData& cached = scheduler_output.scheduled_cached_reqs;
  std::span<const int32_t> state_block_ids = cached.state_block_ids;
  for (size_t i = 0; i < cached.size(); ++i) {
    CachedRequestState& state = StateOf(cached.request_ids[i]);
    if (cached.resumed_from_preemption[i] != 0) {
      for (std::vector<int32_t>& table : state.block_ids) table.clear();
      const size_t num_state_blocks = state.state_block_ids.size();
      std::copy_n(state_block_ids.begin(), num_state_blocks, state.state_block_ids.begin());
      state_block_ids = state_block_ids.subspan(num_state_blocks);
      state.num_state_tokens = cached.num_computed_tokens[i];
    }
    AddBlocks(cached.NewBlocks(i), state);
    const std::span<const int32_t> tokens = cached.NewTokens(i);
    state.token_ids.insert(state.token_ids.end(), tokens.begin(), tokens.end());
    for (const int32_t id : tokens) state.FeedOutput(id);
    const std::span<const int32_t> drafts = cached.Drafts(i);
    state.token_ids.insert(state.token_ids.end(), drafts.begin(), drafts.end());
    state.num_drafts = static_cast<int64_t>(drafts.size());
    state.num_computed_tokens = cached.num_computed_tokens[i];
    // If a request is preempted before its first token, the scheduler discards its prompt logprobs. They are computed
    // again from the first position.
    const bool in_prompt = state.num_tokens() == state.num_prompt_tokens();
    if (cached.resumed_from_preemption[i] != 0 && in_prompt) state.num_prompt_logprobs = 0;
  }

  token_ids_.clear();
  positions_.clear();
  token_type_ids_.clear();
  lora_slots_.clear();
  has_lora_ = false;
  recurrent_.clear();
  checkpoints_.clear();
  checkpoints_.reserve(scheduler_output.checkpoints.size());  // because sequences refer to them
  size_t next_checkpoint = 0;
  attention_.rows.clear();
  for (AttentionGroup& group : attention_.groups) {
    group.slot_mapping.clear();
    group.sequences.clear();
  }
  for (const NumScheduledTokens& scheduled : scheduler_output.num_scheduled_tokens) {
    CachedRequestState& state = StateOf(scheduled.request_id);
    const int64_t first = state.num_computed_tokens;
    const int64_t last = first + scheduled.num_tokens;
    if (last > static_cast<int64_t>(state.token_ids.size()) ||
        last > static_cast<int64_t>(state.block_ids[0].size()) * block_size_) {
      throw std::logic_error("input batch: request " + std::to_string(scheduled.request_id) +
                             " is scheduled past its tokens or blocks (up to token " + std::to_string(last) + ")");
    }
    const auto row = static_cast<int64_t>(token_ids_.size());
    entries_.push_back({&state, row, scheduled.num_tokens});
    for (size_t g = 0; g < attention_.groups.size(); ++g) {
      attention_.groups[g].sequences.push_back({row, scheduled.num_tokens, first, state.block_ids[g].data()});
    }
    if (!state.state_block_ids.empty()) AddRecurrentSequence(scheduler_output, next_checkpoint);
    AddRows(state, first, last);
  }
}

void InputBatch::AddRecurrentSequence(const SchedulerOutput& scheduler_output, size_t& next_checkpoint) {
  const BatchEntry& entry = entries_.back();
  CachedRequestState& state = *entry.state;
  RecurrentSequence& sequence = recurrent_.emplace_back();
  sequence.first_row = entry.first_row;
  sequence.num_rows = entry.num_rows;
  sequence.num_drafts = entry.num_drafts();
  sequence.first_position = entry.first_position();
  sequence.block_ids = state.state_block_ids.data();
  sequence.num_accepted = entry.first_position() - state.num_state_tokens;
  if (sequence.num_accepted < 0 || sequence.num_accepted > state.draft_inputs.num_rows) {
    throw std::logic_error("input batch: request " + std::to_string(state.request->request_id) +
                           " continues at token " + std::to_string(entry.first_position()) +
                           ", but its recurrent state belongs to " + std::to_string(state.num_state_tokens) +
                           " tokens");
  }
  if (sequence.num_accepted > 0 || sequence.num_drafts > 0) sequence.drafts = &state.draft_inputs;
  state.draft_inputs.num_rows = sequence.num_drafts;
  state.num_state_tokens = sequence.end_position();
  const size_t begin = checkpoints_.size();
  for (; next_checkpoint < scheduler_output.checkpoints.size(); ++next_checkpoint) {
    const ScheduledCheckpoint& checkpoint = scheduler_output.checkpoints[next_checkpoint];
    if (checkpoint.request_id != state.request->request_id) break;
    checkpoints_.push_back(
        {checkpoint.position, scheduler_output.checkpoint_block_ids.data() + checkpoint.first_block});
  }
  sequence.checkpoints = std::span(checkpoints_).subspan(begin);
}

void InputBatch::AddBlocks(std::span<const int32_t> block_ids, CachedRequestState& state) const {
  if (block_ids.size() % state.block_ids.size() != 0) {
    throw std::logic_error("input batch: request " + std::to_string(state.request->request_id) +
                           " gets unequal numbers of blocks in " + std::to_string(state.block_ids.size()) + " groups");
  }
  const size_t count = block_ids.size() / state.block_ids.size();
  for (size_t g = 0; g < state.block_ids.size(); ++g) {
    const std::span<const int32_t> added = block_ids.subspan(g * count, count);
    state.block_ids[g].insert(state.block_ids[g].end(), added.begin(), added.end());
  }
}

void InputBatch::AddRows(const CachedRequestState& state, int64_t first, int64_t last) {
  const int32_t lora_slot = state.request->lora_slot;
  has_lora_ = has_lora_ || lora_slot >= 0;
  lora_slots_.insert(lora_slots_.end(), static_cast<size_t>(last - first), lora_slot);
  for (int64_t position = first; position < last; ++position) {
    token_ids_.push_back(state.token_ids[static_cast<size_t>(position)]);
    attention_.rows.push_back({static_cast<int64_t>(positions_.size()), position});
    positions_.push_back(position);
    const std::vector<int32_t>& types = state.request->token_type_ids;
    const auto index = static_cast<size_t>(position);
    token_type_ids_.push_back(index < types.size() ? types[index] : 0);
  }
  for (size_t g = 0; g < attention_.groups.size(); ++g) {
    for (int64_t position = first; position < last; ++position) {
      const int64_t block = state.block_ids[g][static_cast<size_t>(position / block_size_)];
      attention_.groups[g].slot_mapping.push_back(block * block_size_ + position % block_size_);
    }
  }
}

}  // namespace vllm
