#include "tests/sched/scheduler_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/trace/trace_recorder.h"

namespace vllm {

SchedulerConfig SchedulerOptions::Config() const {
  SchedulerConfig config;
  config.max_num_batched_tokens = max_num_batched_tokens;
  config.max_num_seqs = max_num_seqs;
  config.max_loras = max_loras;
  config.long_prefill_token_threshold = long_prefill_token_threshold;
  config.enable_chunked_prefill = enable_chunked_prefill;
  config.policy = policy;
  config.scheduler_reserve_full_isl = scheduler_reserve_full_isl;
  return config;
}

CacheConfig SchedulerOptions::Cache() const {
  CacheConfig cache;
  cache.block_size = block_size;
  cache.num_blocks = num_blocks;
  cache.enable_prefix_caching = enable_prefix_caching;
  cache.group_windows = group_windows;
  return cache;
}

EngineCoreRequestPtr MakeRequest(RequestId id, std::vector<int32_t> prompt_token_ids, const RequestSpec& options) {
  auto request = std::make_shared<EngineCoreRequest>();
  request->request_id = id;
  request->prompt_token_ids = std::move(prompt_token_ids);
  request->sampling_params.max_tokens = options.max_tokens;
  request->sampling_params.ignore_eos = options.ignore_eos;
  request->sampling_params.seed = id;
  request->arrival_time = SteadyTime(std::chrono::milliseconds(options.arrival_ms));
  request->priority = options.priority;
  request->cache_salt = options.cache_salt;
  request->interactive = options.interactive;
  request->lora_slot = options.lora_slot;
  if (options.pooling) request->pooling_params.emplace();
  if (options.lora_slot >= 0) request->lora_digest = "adapter " + std::to_string(options.lora_slot);
  if (options.edit) options.edit(request->sampling_params);
  return request;
}

std::vector<int32_t> Repeat(int32_t token_id, int64_t count) {
  return std::vector<int32_t>(static_cast<size_t>(count), token_id);
}

std::vector<int32_t> Iota(int32_t first, int64_t count) {
  std::vector<int32_t> token_ids(static_cast<size_t>(count));
  std::iota(token_ids.begin(), token_ids.end(), first);
  return token_ids;
}

SchedulerHarness::SchedulerHarness(const SchedulerOptions& options)
    : scheduler(options.Config(), options.Cache(), options.max_model_len, options.hash_function),
      next_token([](RequestId id, int64_t position) { return static_cast<int32_t>(id * 1000 + position % 1000); }),
      options_(options) {}

void SchedulerHarness::Add(const EngineCoreRequestPtr& request) {
  std::string rejection_reason;
  ASSERT_TRUE(TryAdd(request, &rejection_reason)) << rejection_reason;
}

bool SchedulerHarness::TryAdd(const EngineCoreRequestPtr& request, std::string* rejection_reason) {
  const bool accepted = scheduler.AddRequest(request, rejection_reason);
  if (recorder_ != nullptr) recorder_->Add(*request, accepted);
  return accepted;
}

void SchedulerHarness::RecordTo(TraceRecorder* recorder) {
  recorder_ = recorder;
  recorder->Begin(options_.Config(), options_.Cache(), options_.max_model_len);
}

bool SchedulerHarness::ResetPrefixCache() {
  const bool ok = scheduler.ResetPrefixCache();
  if (recorder_ != nullptr) recorder_->ResetPrefixCache(ok);
  return ok;
}

void SchedulerHarness::Add(RequestId id, int64_t num_prompt_tokens, const RequestSpec& options) {
  Add(MakeRequest(id, Repeat(static_cast<int32_t>(id), num_prompt_tokens), options));
}

void SchedulerHarness::Abort(RequestId id) {
  scheduler.FinishRequests(std::span(&id, 1), FinishReason::kAbort);
  if (recorder_ != nullptr) recorder_->Finish(std::span(&id, 1), FinishReason::kAbort);
}

const SchedulerOutput& SchedulerHarness::Schedule() {
  output = &scheduler.Schedule();
  const BlockPool& pool = scheduler.kv_cache().pool();
  if (recorder_ != nullptr) recorder_->Step(*output, pool.num_blocks() - pool.num_free_blocks());
  UpdateWorkers();
  return *output;
}

void SchedulerHarness::UpdateWorkers() {
  for (const RequestId id : output->finished_req_ids)
    EXPECT_EQ(worker_states_.erase(id), 1u) << "finished, but unknown to the workers: request " << id;
  for (const RequestId id : output->preempted_req_ids) {
    ASSERT_TRUE(worker_states_.contains(id)) << "preempted, but unknown to the workers: request " << id;
    worker_states_[id].preempted = true;
    for (auto& table : worker_states_[id].block_ids) table.clear();
  }
  for (const NewRequestData& data : output->scheduled_new_reqs) {
    const RequestId id = data.request->request_id;
    ASSERT_FALSE(worker_states_.contains(id)) << "sent as new twice: request " << id;
    worker_states_[id] = {data.request, {}, {}, data.num_computed_tokens, false};
    AddBlocks(data.block_ids, worker_states_[id]);
  }
  const CachedRequestData& cached = output->scheduled_cached_reqs;
  for (size_t i = 0; i < cached.size(); ++i) {
    const RequestId id = cached.request_ids[i];
    ASSERT_TRUE(worker_states_.contains(id)) << "running, but unknown to the workers: request " << id;
    WorkerState& state = worker_states_[id];
    EXPECT_EQ(state.preempted, cached.resumed_from_preemption[i] == 1) << id;
    const auto tokens = cached.NewTokens(i);
    state.output_token_ids.insert(state.output_token_ids.end(), tokens.begin(), tokens.end());
    if (cached.resumed_from_preemption[i]) {
      for (auto& table : state.block_ids) table.clear();
    } else {
      EXPECT_EQ(state.num_computed_tokens, cached.num_computed_tokens[i]) << id;
    }
    state.preempted = false;
    AddBlocks(cached.NewBlocks(i), state);
    state.num_computed_tokens = cached.num_computed_tokens[i];
  }
  int64_t total = 0;
  std::set<RequestId> seen;
  for (const NumScheduledTokens& scheduled : output->num_scheduled_tokens) {
    EXPECT_TRUE(seen.insert(scheduled.request_id).second) << "scheduled twice: request " << scheduled.request_id;
    EXPECT_GT(scheduled.num_tokens, 0);
    total += scheduled.num_tokens;
    WorkerState& state = worker_states_[scheduled.request_id];
    state.num_computed_tokens += scheduled.num_tokens;
    // The worker must have received every token that it computes, and must have a slot for it.
    EXPECT_LE(state.num_computed_tokens,
              static_cast<int64_t>(state.request->prompt_token_ids.size() + state.output_token_ids.size()));
    for (size_t g = 0; g < options_.group_windows.size(); ++g) {
      EXPECT_LE(state.num_computed_tokens, static_cast<int64_t>(state.block_ids[g].size()) * options_.block_size);
      // Attention may only read and write blocks that this request holds.
      const int64_t window = options_.group_windows[g];
      const int64_t first = state.num_computed_tokens - scheduled.num_tokens;
      const auto table = scheduler.kv_cache().Blocks(scheduled.request_id, g);
      EXPECT_EQ(table.size(), state.block_ids[g].size());
      const int64_t begin = window > 0 ? std::max<int64_t>(0, first - window + 1) : 0;
      for (int64_t b = begin / options_.block_size; b < static_cast<int64_t>(table.size()); ++b) {
        const int32_t block_id = state.block_ids[g][static_cast<size_t>(b)];
        EXPECT_EQ(block_id, table[static_cast<size_t>(b)]->block_id);
        EXPECT_GT(block_id, 0);
      }
    }
  }
  EXPECT_EQ(seen.size(), output->scheduled_new_reqs.size() + cached.size());
  EXPECT_EQ(total, output->total_num_scheduled_tokens);
  EXPECT_LE(total, options_.max_num_batched_tokens);
}

void SchedulerHarness::AddBlocks(std::span<const int32_t> block_ids, WorkerState& state) const {
  const size_t num_groups = options_.group_windows.size();
  ASSERT_EQ(block_ids.size() % num_groups, 0u);
  state.block_ids.resize(num_groups);
  const size_t count = block_ids.size() / num_groups;
  for (size_t g = 0; g < num_groups; ++g) {
    const auto added = block_ids.subspan(g * count, count);
    state.block_ids[g].insert(state.block_ids[g].end(), added.begin(), added.end());
  }
}

void SchedulerHarness::Update() {
  runner_output.Clear();
  for (const NumScheduledTokens& scheduled : output->num_scheduled_tokens) {
    const WorkerState& state = worker_states_[scheduled.request_id];
    const auto num_known = static_cast<int64_t>(state.request->prompt_token_ids.size() + state.output_token_ids.size());
    runner_output.request_ids.push_back(scheduled.request_id);
    const bool is_computed = state.num_computed_tokens == num_known;
    if (is_computed && state.request->pooling_params) {
      runner_output.pooled.emplace_back(scheduled.request_id, std::vector<float>{1.0f});
    } else if (is_computed) {
      runner_output.sampled_token_ids.push_back(next_token(scheduled.request_id, num_known));
    }
    runner_output.sampled_offsets.push_back(runner_output.sampled_token_ids.size());
    runner_output.logprobs_index.push_back(-1);
  }
  if (edit_output) edit_output(runner_output);
  outputs.Clear();
  scheduler.UpdateFromOutput(runner_output, outputs);
  if (recorder_ != nullptr) recorder_->Update(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const EngineCoreOutput& entry = outputs[i];
    Result& result = results[entry.request_id];
    EXPECT_EQ(result.reason, FinishReason::kNone) << "output after the end of request " << entry.request_id;
    result.token_ids.insert(result.token_ids.end(), entry.new_token_ids.begin(), entry.new_token_ids.end());
    result.reason = entry.finish_reason;
    result.num_cached_tokens = entry.num_cached_tokens;
    result.num_preemptions = entry.num_preemptions;
    result.stop_token_id = entry.stop_token_id;
    result.error = entry.error;
  }
}

void SchedulerHarness::RollBack() {
  for (const NumScheduledTokens& scheduled : output->num_scheduled_tokens) {
    worker_states_.at(scheduled.request_id).num_computed_tokens -= scheduled.num_tokens;
  }
  scheduler.RollBackStep();
  if (recorder_ != nullptr) recorder_->RollBack();
}

const SchedulerOutput& SchedulerHarness::Step() {
  Schedule();
  Update();
  return *output;
}

void SchedulerHarness::RunToEnd(int64_t max_steps) {
  for (int64_t i = 0; i < max_steps && scheduler.HasUnfinishedRequests(); ++i) {
    Step();
    ASSERT_GT(output->total_num_scheduled_tokens, 0) << "a step without progress";
  }
  ASSERT_FALSE(scheduler.HasUnfinishedRequests()) << "still unfinished after " << max_steps << " steps";
  Schedule();
  EXPECT_EQ(scheduler.CheckIntegrity(), "");
  EXPECT_EQ(scheduler.kv_cache().usage(), 0.0);
  EXPECT_FALSE(scheduler.HasFinishedRequests());
  EXPECT_TRUE(worker_states_.empty());
}

int64_t SchedulerHarness::Scheduled(RequestId id) const {
  for (const NumScheduledTokens& scheduled : output->num_scheduled_tokens) {
    if (scheduled.request_id == id) return scheduled.num_tokens;
  }
  return 0;
}

std::vector<int32_t> SchedulerHarness::BlockIds(RequestId id, size_t group) const {
  std::vector<int32_t> ids;
  for (const KVCacheBlock* block : scheduler.kv_cache().Blocks(id, group)) ids.push_back(block->block_id);
  return ids;
}

}  // namespace vllm
