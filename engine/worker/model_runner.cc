#include "engine/worker/model_runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "engine/config/errors.h"

namespace vllm {

namespace {

// Limits the memory for the results of planned KV partitions. Pages take physical memory only once a step uses them.
// Partitions whose results do not fit are not planned, so each row's own task computes them.
constexpr int64_t kMaxPartialBytes = int64_t{64} << 20;
// Limits the number of partitions for which a plan reserves memory. A plan for more partitions allocates.
constexpr int64_t kMaxPlannedPartitions = int64_t{1} << 22;

// Ends the work of the mask thread also if the step is cancelled.
class MasksInProgress {
 public:
  explicit MasksInProgress(MaskThread* thread) : thread_(thread) {}
  ~MasksInProgress() {
    if (thread_ != nullptr) thread_->Finish();
  }
  MasksInProgress(const MasksInProgress&) = delete;
  MasksInProgress& operator=(const MasksInProgress&) = delete;

 private:
  MaskThread* thread_;
};

}  // namespace

ModelRunner::ModelRunner(const VllmConfig& config, const StepContext& step, Model& model, LogitsBuffer& logits_buffer,
                         MaskThread* mask_thread, const Pooler* pooler)
    : config_(config),
      step_(step),
      model_(model),
      logits_buffer_(logits_buffer),
      mask_thread_(mask_thread),
      pooler_(pooler),
      batch_(config.scheduler.max_num_batched_tokens, config.model.max_model_len, config.cache.block_size,
             MakeKVCacheGroups(model.Layers().attention).windows.size()) {
  const auto row_bytes = static_cast<size_t>(config.model.hidden_size) * sizeof(float);
  hidden_ = kernels::AlignedBuffer(static_cast<size_t>(config.scheduler.max_num_batched_tokens) * row_bytes);
  gathered_ = kernels::AlignedBuffer(static_cast<size_t>(LogitsBuffer::MaxRows(config)) * row_bytes);
  ReservePlans();
  model_scratch_bytes_ = model.ReserveScratch(config.scheduler.max_num_batched_tokens, LogitsBuffer::MaxRows(config));
  // Each token of a step has at most one row of logits.
  logits_rows_.reserve(static_cast<size_t>(config.scheduler.max_num_batched_tokens));
  lora_slots_.reserve(static_cast<size_t>(LogitsBuffer::MaxRows(config)));
  forced_tokens_.reserve(logits_rows_.capacity());
  allowed_drafts_.reserve(logits_rows_.capacity());
  draft_offsets_.reserve(logits_rows_.capacity());
  for (int thread = 0; thread < step.threads->num_threads(); ++thread)
    samplers_.emplace_back(config.model.vocab_size, *step.kernels,
                           config.logprobs_mode == LogprobsMode::kProcessedLogprobs);
  bitmasks_.resize(samplers_.size());
}

void ModelRunner::ReservePlans() {
  const bool is_encoder = !model_.Layers().encoder.empty();
  const std::vector<KVCacheSpec>& layers = is_encoder ? model_.Layers().encoder : model_.Layers().attention;
  const KVCacheGroups groups = MakeKVCacheGroups(layers);
  AttentionPlanOptions options;
  options.block_size = config_.cache.block_size;
  options.num_threads = step_.threads->num_threads();
  options.max_sequences = config_.scheduler.max_num_seqs;
  const int64_t partitions = (config_.model.max_model_len + kernels::kKVPartition - 1) / kernels::kKVPartition;
  options.max_partitions = std::min(kMaxPlannedPartitions, options.max_sequences * partitions);
  int64_t largest_head = 0;
  for (const KVCacheSpec& layer : layers) {
    largest_head = std::max(largest_head, layer.Layout(options.block_size, config_.KVCacheDType()).ValueDim());
  }
  const int64_t slot_bytes = (config_.model.num_attention_heads / step_.world_size()) *
                             kernels::PartialFloats(largest_head) * static_cast<int64_t>(sizeof(float));
  options.max_slots = std::min(options.max_partitions, kMaxPartialBytes / std::max<int64_t>(1, slot_bytes));
  AttentionMetadata& attention = batch_.attention();
  attention.partials = kernels::AlignedBuffer(static_cast<size_t>(options.max_slots * slot_bytes));
  for (size_t i = 0; i < layers.size(); ++i) {
    const size_t group = groups.layers[i].group;
    options.num_kv_heads = layers[i].num_kv_heads;
    options.num_queries_per_kv = config_.model.num_attention_heads / step_.world_size() / layers[i].num_kv_heads;
    const kernels::KVCacheLayout layout = layers[i].Layout(config_.cache.block_size, config_.KVCacheDType());
    options.head_bytes_per_token = (layout.KeyBytes() + layout.ValueBytes()) / layout.block_size;
    options.sliding_window = groups.windows[group];
    AttentionPlan plan(options);
    // Attention::MakeTasks makes at most one task for each row and each slot, per KV head.
    const auto num_heads = static_cast<size_t>(options.num_kv_heads);
    const size_t max_rows = attention.rows.capacity();
    AttentionWorkspace& workspace = step_.workspace->attention;
    workspace.tasks.reserve((max_rows + plan.max_slots()) * num_heads);
    workspace.merging.reserve(max_rows * num_heads);
    if (!is_encoder) attention.groups[group].plan = std::move(plan);
    if (is_encoder && !encoder_batch_) encoder_batch_.emplace(config_, layers, options);
  }
}

void ModelRunner::Execute(const SchedulerOutput& scheduler_output, KVCache& cache, ModelRunnerOutput* output) {
  batch_.Update(scheduler_output);
  for (const BlockCopy& copy : scheduler_output.block_copies) cache.CopyBlock(copy.from, copy.to);
  if (output != nullptr) output->Clear();
  if (batch_.entries().empty()) return;
  if (encoder_batch_) {
    encoder_batch_->Update(batch_.entries());
  } else {
    for (AttentionGroup& group : batch_.attention().groups) group.plan.Make(group.sequences);
  }
  if (!model_.Layers().recurrent.empty() && batch_.recurrent().size() != batch_.entries().size()) {
    throw std::logic_error("model runner: a request has no blocks for its recurrent state");
  }

  FindForcedTokens();
  MakeDraftStates();
  const MasksInProgress masks(mask_thread_);
  StartMasks();
  const ModelInput input{
      batch_.token_ids(), batch_.positions(),  encoder_batch_ ? encoder_batch_->attention() : batch_.attention(),
      batch_.recurrent(), batch_.lora_slots(), batch_.token_type_ids()};
  model_.Forward(input, encoder_batch_ ? encoder_batch_->cache() : cache, hidden_.as<float>());

  if (pooler_ != nullptr) Pool();
  CollectLogitsRows();
  const auto rows_at_once = static_cast<size_t>(LogitsBuffer::MaxRows(config_));
  for (size_t begin = 0; begin < logits_rows_.size(); begin += rows_at_once) {
    ComputeRows(begin, std::min(begin + rows_at_once, logits_rows_.size()));
  }
  CountPromptLogprobs();
  if (mask_thread_ != nullptr) mask_thread_->Finish();
  if (output != nullptr) FillOutput(*output);
}

void ModelRunner::FindForcedTokens() {
  forced_tokens_.clear();
  for (const BatchEntry& entry : batch_.entries()) {
    const bool may_force = entry.samples() && entry.state->constraint != nullptr;
    forced_tokens_.push_back(may_force ? entry.state->constraint->ForcedToken() : -1);
  }
}

void ModelRunner::MakeDraftStates() {
  allowed_drafts_.clear();
  draft_offsets_.clear();
  draft_states_.clear();
  for (const BatchEntry& entry : batch_.entries()) {
    const CachedRequestState& state = *entry.state;
    draft_offsets_.push_back(draft_states_.size());
    int64_t allowed = entry.samples() ? state.num_drafts : 0;
    if (state.constraint != nullptr || state.thinking != nullptr) {
      for (int64_t i = 0; i < allowed; ++i) {
        const auto index = static_cast<size_t>(state.num_tokens() + i);
        const DraftState* last = i == 0 ? nullptr : &draft_states_.back();
        DraftState next;
        if (state.constraint != nullptr) {
          next.constraint = std::make_unique<OutputConstraint>(last == nullptr ? *state.constraint : *last->constraint);
          if (!next.constraint->Feed(state.token_ids[index])) {
            allowed = i;  // no token that may be sampled equals this draft
            break;
          }
          next.forced_token = next.constraint->ForcedToken();
        }
        if (state.thinking != nullptr) {
          next.thinking = std::make_unique<ThinkingTracker>(last == nullptr ? *state.thinking : *last->thinking);
          next.thinking->Feed(state.token_ids[index]);
        }
        draft_states_.push_back(std::move(next));
      }
    }
    allowed_drafts_.push_back(allowed);
  }
}

OutputConstraint* ModelRunner::ConstraintAfter(size_t entry, int64_t num_drafts) const {
  const CachedRequestState& state = *batch_.entries()[entry].state;
  if (num_drafts == 0 || state.constraint == nullptr) return state.constraint.get();
  return draft_states_[draft_offsets_[entry] + static_cast<size_t>(num_drafts) - 1].constraint.get();
}

const ThinkingTracker* ModelRunner::ThinkingAfter(size_t entry, int64_t num_drafts) const {
  const CachedRequestState& state = *batch_.entries()[entry].state;
  if (num_drafts == 0 || state.thinking == nullptr) return state.thinking.get();
  return draft_states_[draft_offsets_[entry] + static_cast<size_t>(num_drafts) - 1].thinking.get();
}

int32_t ModelRunner::ForcedTokenAfter(size_t entry, int64_t num_drafts) const {
  if (num_drafts == 0 || batch_.entries()[entry].state->constraint == nullptr) return forced_tokens_[entry];
  return draft_states_[draft_offsets_[entry] + static_cast<size_t>(num_drafts) - 1].forced_token;
}

void ModelRunner::StartMasks() {
  if (mask_thread_ == nullptr) return;
  missing_masks_.clear();
  const std::vector<BatchEntry>& entries = batch_.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].samples() || entries[i].state->constraint == nullptr) continue;
    for (int64_t n = 0; n <= allowed_drafts_[i]; ++n) {
      OutputConstraint* const constraint = ConstraintAfter(i, n);
      if (ForcedTokenAfter(i, n) < 0 && constraint->NeedsMask()) missing_masks_.push_back(constraint);
    }
  }
  mask_thread_->Start(missing_masks_);
}

void ModelRunner::CollectLogitsRows() {
  logits_rows_.clear();
  const std::vector<BatchEntry>& entries = batch_.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    const BatchEntry& entry = entries[i];
    const CachedRequestState& state = *entry.state;
    if (state.request->sampling_params.prompt_logprobs) {
      const int64_t last = std::min(entry.first_position() + entry.num_rows, state.num_prompt_tokens() - 1);
      for (int64_t position = std::max(entry.first_position(), state.num_prompt_logprobs); position < last;
           ++position) {
        const int32_t target = state.token_ids[static_cast<size_t>(position + 1)];
        logits_rows_.push_back({i, entry.first_row + position - entry.first_position(), target});
      }
    }
    if (state.request->pooling_params) {
      if (NeedsScoreLogits(entry)) logits_rows_.push_back({i, entry.first_sampled_row()});
      continue;
    }
    if (!entry.samples()) continue;
    // Without drafts, a forced token needs logits only for its logprobs.
    const bool needs_logits =
        forced_tokens_[i] < 0 || entry.num_drafts() > 0 || state.request->sampling_params.logprobs.has_value();
    if (!needs_logits) continue;
    for (int64_t n = 0; n <= allowed_drafts_[i]; ++n) logits_rows_.push_back({i, entry.first_sampled_row() + n, -1, n});
  }
}

void ModelRunner::Pool() {
  for (const BatchEntry& entry : batch_.entries()) {
    CachedRequestState& state = *entry.state;
    if (!state.request->pooling_params) continue;
    for (int64_t i = 0; i < entry.num_rows; ++i) {
      pooler_->Add(entry.first_position() + i, state.num_prompt_tokens(),
                   hidden_.as<float>() + (entry.first_row + i) * config_.model.hidden_size,
                   *state.request->pooling_params, state.pooling);
    }
  }
}

bool ModelRunner::NeedsScoreLogits(const BatchEntry& entry) const {
  const std::optional<ClassifierConfig>& classifier = config_.model.pooler.classifier;
  return entry.state->request->pooling_params->task == PoolingTask::kScore && classifier && classifier->token_pair &&
         entry.samples();
}

void ModelRunner::FillPooled(size_t index, ModelRunnerOutput& output) const {
  const BatchEntry& entry = batch_.entries()[index];
  const EngineCoreRequest& request = *entry.state->request;
  if (!request.pooling_params || !entry.samples()) return;
  std::vector<float> pooled;
  if (NeedsScoreLogits(entry)) {
    const auto row = std::ranges::find(logits_rows_, index, &LogitsRow::entry);
    pooled = {logits_buffer_.results[static_cast<size_t>(row - logits_rows_.begin())].score};
    pooler_->ToScores(pooled);
  } else {
    pooled = pooler_->Finish(entry.state->pooling, *request.pooling_params);
  }
  if (std::ranges::all_of(pooled, [](float x) { return std::isfinite(x); })) {
    output.pooled.emplace_back(request.request_id, std::move(pooled));
  } else {
    output.failed.emplace_back(request.request_id, "the result contains NaN or infinity");
  }
}

void ModelRunner::CountPromptLogprobs() {
  for (const BatchEntry& entry : batch_.entries()) {
    CachedRequestState& state = *entry.state;
    if (!state.request->sampling_params.prompt_logprobs) continue;
    const int64_t last = std::min(entry.first_position() + entry.num_rows, state.num_prompt_tokens() - 1);
    state.num_prompt_logprobs = std::max(state.num_prompt_logprobs, last);
  }
}

void ModelRunner::ComputeRows(size_t begin, size_t end) {
  const auto size = static_cast<size_t>(config_.model.hidden_size);
  auto* gathered = gathered_.as<float>();
  for (size_t i = begin; i < end; ++i) {
    std::memcpy(gathered + (i - begin) * size, hidden_.as<float>() + static_cast<size_t>(logits_rows_[i].row) * size,
                size * sizeof(float));
  }
  const int64_t vocab_size = config_.model.vocab_size;
  const auto num_rows = static_cast<int64_t>(end - begin);
  auto* logits = logits_buffer_.logits.as<float>();
  const int32_t* const step_slots = batch_.lora_slots();
  if (step_slots != nullptr) {
    lora_slots_.clear();
    for (size_t i = begin; i < end; ++i) lora_slots_.push_back(step_slots[logits_rows_[i].row]);
  }
  model_.ComputeLogits(gathered, num_rows, logits, vocab_size, step_slots == nullptr ? nullptr : lora_slots_.data());
  step_.communicator->Barrier();
  const int64_t first = num_rows * step_.rank() / step_.world_size();
  const int64_t last = num_rows * (step_.rank() + 1) / step_.world_size();
  step_.threads->ParallelFor(last - first, [&](int64_t i, int thread) {
    SampleRow(begin + static_cast<size_t>(first + i), thread, logits + (first + i) * vocab_size);
  });
  // All rows must be sampled before rank 0 reads the results and before the logits are overwritten.
  step_.communicator->Barrier();
}

void ModelRunner::SampleRow(size_t index, int thread, float* logits_row) {
  const LogitsRow& row = logits_rows_[index];
  const CachedRequestState& state = *batch_.entries()[row.entry].state;
  const SamplingParams& params = state.request->sampling_params;
  LogitsBuffer::RowResult& result = logits_buffer_.results[index];
  result.token_id = -1;
  result.has_logprobs = false;
  result.logprobs.Clear();
  result.error.clear();
  Sampler& sampler = samplers_[static_cast<size_t>(thread)];
  const std::span<float> logits(logits_row, static_cast<size_t>(config_.model.vocab_size));
  if (state.request->pooling_params) {
    const auto [first, second] = *config_.model.pooler.classifier->token_pair;
    result.score = logits[static_cast<size_t>(second)] - logits[static_cast<size_t>(first)];
    return;
  }
  try {
    if (row.prompt_target >= 0) {
      sampler.AppendLogprobs(logits, row.prompt_target, *params.prompt_logprobs, result.logprobs);
      if (std::isnan(result.logprobs.logprobs[0]))
        result.error = "the model's logits at a prompt position contain NaN or infinity";
      return;
    }
    const auto num_tokens = static_cast<size_t>(state.num_tokens() + row.num_drafts);
    const std::span<const int32_t> tokens = std::span(state.token_ids).first(num_tokens);
    const auto num_prompt = static_cast<size_t>(state.num_prompt_tokens());
    SamplingRow sampling{logits, &params, tokens.first(num_prompt), tokens.subspan(num_prompt)};
    OutputConstraint* const constraint = ConstraintAfter(row.entry, row.num_drafts);
    sampling.forced_token_id = ForcedTokenAfter(row.entry, row.num_drafts);
    if (const ThinkingTracker* thinking = ThinkingAfter(row.entry, row.num_drafts);
        thinking != nullptr && sampling.forced_token_id < 0) {
      sampling.forced_token_id = thinking->ForcedToken(*params.thinking_token_budget);
    }
    if (TokenBitmask& bitmask = bitmasks_[static_cast<size_t>(thread)];
        constraint != nullptr && sampling.forced_token_id < 0 && constraint->FillBitmask(bitmask)) {
      sampling.bitmask = bitmask;
      sampling.must_stop = constraint->MustStop();
    }
    result.has_logprobs = params.logprobs.has_value();
    result.token_id = sampler.Sample(sampling, result.has_logprobs ? &result.logprobs : nullptr, result.error);
  } catch (const std::bad_alloc&) {
    result.token_id = -1;
    result.error = kOutOfMemory;
  } catch (const std::exception& e) {
    // Only the row's request fails. If there is no memory even for the message, bad_alloc stops all ranks.
    result.token_id = -1;
    result.error = e.what();
  }
}

void ModelRunner::AppendForced(size_t entry, std::vector<int32_t>& sampled, size_t first) const {
  const CachedRequestState& state = *batch_.entries()[entry].state;
  if (state.constraint == nullptr || state.request->sampling_params.logprobs) return;
  if (forced_tokens_[entry] >= 0 && sampled.size() == first) sampled.push_back(forced_tokens_[entry]);
  if (!config_.structured_outputs.enable_jump_decoding || sampled.size() == first) return;
  const auto num_drafts = static_cast<int64_t>(sampled.size() - first) - 1;  // before the last sampled token
  const auto max_tokens =
      static_cast<size_t>(std::max<int64_t>(0, config_.model.max_model_len - state.num_tokens() - num_drafts - 1));
  ConstraintAfter(entry, num_drafts)->AppendForcedAfter(sampled.back(), max_tokens, sampled);
}

const std::string* ModelRunner::AppendSampled(size_t entry, size_t& next, ModelRunnerOutput& output) {
  const CachedRequestState& state = *batch_.entries()[entry].state;
  const size_t first = output.sampled_token_ids.size();
  const std::string* error = nullptr;
  bool is_last = false;
  for (; next < logits_rows_.size() && logits_rows_[next].entry == entry; ++next) {
    if (is_last) continue;
    const LogitsBuffer::RowResult& result = logits_buffer_.results[next];
    if (!result.error.empty()) {
      error = &result.error;
      break;
    }
    output.sampled_token_ids.push_back(result.token_id);
    if (result.has_logprobs) {
      if (output.logprobs_index.back() < 0) {
        output.logprobs_index.back() = static_cast<int32_t>(output.logprobs.size());
        output.logprobs.emplace_back();
      }
      output.logprobs.back().Append(result.logprobs);
    }
    const int64_t position = state.num_tokens() + logits_rows_[next].num_drafts;
    is_last = position >= static_cast<int64_t>(state.token_ids.size()) ||
              state.token_ids[static_cast<size_t>(position)] != result.token_id;
  }
  while (next < logits_rows_.size() && logits_rows_[next].entry == entry) ++next;
  const size_t num_sampled = output.sampled_token_ids.size() - first;
  output.num_accepted_drafts.back() = static_cast<int32_t>(std::max<size_t>(num_sampled, 1) - 1);
  if (error != nullptr) return num_sampled == 0 ? error : nullptr;
  AppendForced(entry, output.sampled_token_ids, first);
  return nullptr;
}

void ModelRunner::FillOutput(ModelRunnerOutput& output) {
  const std::vector<BatchEntry>& entries = batch_.entries();
  size_t next = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const RequestId id = entries[i].state->request->request_id;
    output.request_ids.push_back(id);
    output.logprobs_index.push_back(-1);
    output.num_accepted_drafts.push_back(0);
    const std::string* error = nullptr;
    if (entries[i].state->request->pooling_params) {
      FillPooled(i, output);
      while (next < logits_rows_.size() && logits_rows_[next].entry == i) ++next;
      output.sampled_offsets.push_back(output.sampled_token_ids.size());
      continue;
    }
    Logprobs* prompt = nullptr;
    for (; next < logits_rows_.size() && logits_rows_[next].entry == i && logits_rows_[next].prompt_target >= 0;
         ++next) {
      LogitsBuffer::RowResult& result = logits_buffer_.results[next];
      if (!result.error.empty()) {
        if (error == nullptr) error = &result.error;
        continue;
      }
      if (prompt == nullptr) prompt = &output.prompt_logprobs.emplace_back(id, Logprobs{}).second;
      prompt->Append(result.logprobs);
    }
    if (error == nullptr) {
      error = AppendSampled(i, next, output);
    } else {
      while (next < logits_rows_.size() && logits_rows_[next].entry == i) ++next;
    }
    output.sampled_offsets.push_back(output.sampled_token_ids.size());
    if (error != nullptr) output.failed.emplace_back(id, *error);
  }
}

size_t ModelRunner::scratch_bytes() const {
  const AttentionMetadata& attention = batch_.attention();
  size_t bytes = hidden_.size_bytes() + gathered_.size_bytes() + attention.partials.size_bytes() +
                 step_.workspace->size_bytes() + model_scratch_bytes_;
  for (const AttentionGroup& group : attention.groups) bytes += group.plan.size_bytes();
  if (encoder_batch_) bytes += encoder_batch_->size_bytes();
  return bytes;
}

}  // namespace vllm
