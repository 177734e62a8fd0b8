// FakeExecutor: an Executor whose model is a hash function. It tracks requests like a rank and throws if the scheduler
// breaks the protocol. An emulated KV cache holds, for each position, a hash of the tokens up to it. The next token is
// computed from the last hash and, unless sampling is greedy, from the seed, so every schedule must produce the same
// tokens. With FakeModel::check_kv, a wrong block is detected in the same step. FakeModel also makes the executor fail
// on demand. Owned by the EngineCore under test; called on the engine thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/core/engine_core_client.h"
#include "engine/executor/executor.h"

namespace vllm::testing {

struct FakeModel {
  int64_t memory_bytes = 1 << 20;
  int64_t block_bytes = 1024;
  std::vector<int64_t> group_windows = {0};
  int64_t num_state_blocks = 0;  // above 0: requests have a recurrent state, which is checked like the KV
  bool throw_at_load = false;
  bool throw_at_profile = false;
  bool throw_at_cache = false;
  int64_t throw_at_step = -1;  // counts from 0
  bool check_kv = true;        // checks all KV that each step attends to; off in benchmarks and allocation tests
  // If true, the executor returns no sampled tokens, as if it were broken.
  bool loses_tokens = false;
  // Overrides the hash: returns the token that follows `tokens`.
  std::function<int32_t(const EngineCoreRequest&, const std::vector<int32_t>& tokens)> next_token;
  // Overrides the logprobs of sampled positions: returns that of `token_id` after `tokens`.
  std::function<float(const std::vector<int32_t>& tokens, int32_t token_id)> logprob;
  // Returns true if the logits after `tokens` are NaN.
  std::function<bool(const EngineCoreRequest&, const std::vector<int32_t>& tokens)> fails;
  // Returns how many of the step's requests are computed before the step is cancelled, or a negative number if it is
  // not cancelled. `step` counts from 1.
  std::function<int64_t(int64_t step, const SchedulerOutput&)> cancels;
  // From the second step on, a step that schedules this request runs until the cancellation flag is set. 0: no such
  // request.
  RequestId endless_request = 0;
  // Called at the start of each step, on the engine thread. `step` counts from 0.
  std::function<void(int64_t step, const SchedulerOutput&)> on_step;
};

inline uint64_t FakeMix(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9E3779B97F4A7C15ull;
  h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9ull;
  return h ^ (h >> 32);
}

inline int32_t FakeNextToken(uint64_t kv, const EngineCoreRequest& request, int64_t vocab_size) {
  const SamplingParams& params = request.sampling_params;
  if (!params.greedy()) kv = FakeMix(kv, params.seed.value_or(0));
  return static_cast<int32_t>(kv % static_cast<uint64_t>(vocab_size));
}

// Returns the fake model's first `num_tokens` output tokens for `request`, computed without an engine.
inline std::vector<int32_t> FakeGenerate(const EngineCoreRequest& request, int64_t num_tokens, int64_t vocab_size) {
  uint64_t kv = 0;
  for (const int32_t id : request.prompt_token_ids) kv = FakeMix(kv, static_cast<uint64_t>(id));
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < num_tokens; ++i) {
    ids.push_back(FakeNextToken(kv, request, vocab_size));
    kv = FakeMix(kv, static_cast<uint64_t>(ids.back()));
  }
  return ids;
}

class FakeExecutor final : public Executor {
 public:
  FakeExecutor(const VllmConfig& config, FakeModel model)
      : model_(std::move(model)), vocab_size_(config.model.vocab_size), block_size_(config.cache.block_size) {
    if (model_.throw_at_load) throw std::runtime_error("fake failure at load");
  }

  int64_t PageSizeBytes() const override { return model_.block_bytes; }
  std::vector<int64_t> KVGroupWindows() const override { return model_.group_windows; }
  int64_t NumStateBlocks() const override { return model_.num_state_blocks; }
  int64_t DetermineAvailableMemory() override {
    if (model_.throw_at_profile) throw std::runtime_error("fake failure at profiling");
    return model_.memory_bytes;
  }
  void InitializeKVCache(int64_t num_blocks) override {
    if (model_.throw_at_cache) throw std::runtime_error("fake failure at cache allocation");
    num_blocks_ = num_blocks;
    kv_.assign(static_cast<size_t>((num_blocks + 1) * block_size_), 0);
    block_epoch_.assign(static_cast<size_t>(num_blocks + 1), 0);
  }

  const ModelRunnerOutput& ExecuteModel(const SchedulerOutput& step) override {
    if (model_.on_step) model_.on_step(step_, step);
    if (step_ == model_.throw_at_step) {
      throw std::runtime_error("fake failure at step " + std::to_string(step_));
    }
    ++step_;
    UpdateStates(step);
    output_.Clear();
    int64_t total = 0;
    int64_t num_remaining = model_.cancels ? model_.cancels(step_, step) : -1;
    const bool is_endless = std::any_of(step.num_scheduled_tokens.begin(), step.num_scheduled_tokens.end(),
                                        [&](const auto& s) { return s.request_id == model_.endless_request; });
    if (is_endless && step_ > 1) {
      Require(cancellation_ != nullptr, "no cancellation flag");
      while (!cancellation_->IsCancelled()) std::this_thread::yield();
      num_remaining = 0;
    }
    for (const NumScheduledTokens& scheduled : step.num_scheduled_tokens) {
      if (num_remaining-- == 0) Cancel(step);
      total += scheduled.num_tokens;
      State& state = Known(scheduled.request_id);
      MoveState(state, scheduled.num_tokens, step);
      Run(state, scheduled.num_tokens);
    }
    if (num_remaining == 0) Cancel(step);
    Require(total == step.total_num_scheduled_tokens,
            "total_num_scheduled_tokens is not the sum of num_scheduled_tokens");
    Require(step.num_scheduled_tokens.size() == step.scheduled_new_reqs.size() + step.scheduled_cached_reqs.size(),
            "scheduled requests and listed requests differ");
    return output_;
  }

  void SetCancellation(const kernels::CancellationFlag* flag) override { cancellation_ = flag; }

  bool CanCopyBlocks() const override { return true; }
  void CopyBlockOut(int32_t block_id, std::span<std::byte> payload) override {
    Require(static_cast<int64_t>(payload.size()) == model_.block_bytes, "a payload has the wrong size");
    std::fill(payload.begin(), payload.end(), std::byte{0});
    std::memcpy(payload.data(), &kv_[static_cast<size_t>(block_id * block_size_)], KVBytes());
  }
  void CopyBlockIn(int32_t block_id, std::span<const std::byte> payload) override {
    Require(static_cast<int64_t>(payload.size()) == model_.block_bytes, "a payload has the wrong size");
    Require(block_id >= 1 && block_id <= num_blocks_, "a block id is out of range");
    std::memcpy(&kv_[static_cast<size_t>(block_id * block_size_)], payload.data(), KVBytes());
  }

  size_t num_known_requests() const { return states_.size(); }

 private:
  struct State {
    EngineCoreRequestPtr request;
    std::vector<int32_t> tokens;
    std::vector<int32_t> drafts;               // of the current step
    std::vector<std::vector<int32_t>> blocks;  // [num_groups]
    int64_t num_computed = 0;
    std::vector<int32_t> state_blocks;
    int64_t num_state_tokens = 0;  // that the recurrent state belongs to
    int64_t num_last_drafts = 0;   // that the state does not contain
    bool preempted = false;
    int64_t listed_in_step = 0;
    int64_t ran_in_step = 0;
    int64_t first_in_step = 0;  // num_computed before that step
  };

  size_t KVBytes() const { return static_cast<size_t>(block_size_) * sizeof(uint64_t); }

  static void Require(bool condition, const char* what) {
    if (!condition) throw std::logic_error(std::string("protocol violation: ") + what);
  }

  // Overwrites the KV of all tokens in the step, computed or not, with garbage, and throws StepCancelled.
  [[noreturn]] void Cancel(const SchedulerOutput& step) {
    for (const NumScheduledTokens& scheduled : step.num_scheduled_tokens) {
      State& state = Known(scheduled.request_id);
      if (state.ran_in_step == step_) state.num_computed = state.first_in_step;
      for (int64_t i = 0; i < scheduled.num_tokens; ++i) {
        for (size_t g = 0; g < state.blocks.size(); ++g) KV(state, g, state.num_computed + i) = 0xbad;
      }
      for (const int32_t block : state.state_blocks) kv_[static_cast<size_t>(block * block_size_)] = 0xbad;
    }
    for (const int32_t block : step.checkpoint_block_ids) kv_[static_cast<size_t>(block * block_size_)] = 0xbad;
    throw kernels::StepCancelled();
  }

  State& Known(RequestId id) {
    const auto it = states_.find(id);
    Require(it != states_.end(), "unknown request");
    return it->second;
  }

  void UpdateStates(const SchedulerOutput& step) {
    for (const RequestId id : step.finished_req_ids) states_.erase(id);
    for (const RequestId id : step.preempted_req_ids) {
      State& state = Known(id);
      Require(!state.preempted, "preempted twice");
      state.preempted = true;
      for (auto& table : state.blocks) table.clear();
    }
    for (const NewRequestData& data : step.scheduled_new_reqs) {
      Require(data.request != nullptr, "a new request has no data");
      const auto [it, inserted] = states_.try_emplace(data.request->request_id);
      Require(inserted, "a new request is already known");
      State& state = it->second;
      state.request = data.request;
      state.tokens.reserve(data.request->prompt_token_ids.size() +
                           static_cast<size_t>(data.request->sampling_params.max_tokens.value_or(0)));
      state.tokens = data.request->prompt_token_ids;
      const std::vector<int32_t>& prior = data.request->prior_output_token_ids;
      state.tokens.insert(state.tokens.end(), prior.begin(), prior.end());
      state.blocks.resize(model_.group_windows.size());
      for (auto& table : state.blocks) table.reserve(256);
      AddBlocks(data.block_ids, state);
      state.num_computed = data.num_computed_tokens;
      state.state_blocks = data.state_block_ids;
      state.num_state_tokens = data.num_computed_tokens;
      state.listed_in_step = step_;
    }
    for (const BlockCopy& copy : step.block_copies) {
      const auto from = kv_.begin() + copy.from * block_size_;
      std::copy(from, from + block_size_, kv_.begin() + copy.to * block_size_);
    }
    const CachedRequestData& cached = step.scheduled_cached_reqs;
    std::span<const int32_t> state_blocks = cached.state_block_ids;
    for (size_t i = 0; i < cached.size(); ++i) {
      State& state = Known(cached.request_ids[i]);
      Require(state.listed_in_step != step_, "listed twice in one step");
      state.listed_in_step = step_;
      Require(state.preempted == (cached.resumed_from_preemption[i] != 0), "resumed_from_preemption is wrong");
      if (state.preempted) {
        state.preempted = false;
        state.num_computed = cached.num_computed_tokens[i];
        const auto count = static_cast<size_t>(model_.num_state_blocks);
        Require(state_blocks.size() >= count, "a resumed request has no blocks for its recurrent state");
        state.state_blocks.assign(state_blocks.begin(), state_blocks.begin() + model_.num_state_blocks);
        state_blocks = state_blocks.subspan(count);
        state.num_state_tokens = state.num_computed;
        state.num_last_drafts = 0;
      }
      Require(state.num_computed == cached.num_computed_tokens[i], "num_computed_tokens differs from the executor's");
      const auto tokens = cached.NewTokens(i);
      state.tokens.insert(state.tokens.end(), tokens.begin(), tokens.end());
      const auto drafts = cached.Drafts(i);
      state.drafts.assign(drafts.begin(), drafts.end());
      AddBlocks(cached.NewBlocks(i), state);
    }
  }

  void AddBlocks(std::span<const int32_t> block_ids, State& state) const {
    const size_t num_groups = state.blocks.size();
    Require(block_ids.size() % num_groups == 0, "groups have different numbers of new blocks");
    const size_t count = block_ids.size() / num_groups;
    for (size_t g = 0; g < num_groups; ++g) {
      const auto added = block_ids.subspan(g * count, count);
      state.blocks[g].insert(state.blocks[g].end(), added.begin(), added.end());
    }
  }

  uint64_t& KV(const State& state, size_t group, int64_t position) {
    const auto block = static_cast<size_t>(position / block_size_);
    Require(block < state.blocks[group].size(), "a token has no block");
    return kv_[static_cast<size_t>(state.blocks[group][block] * block_size_ + position % block_size_)];
  }

  // Returns the first position that the next token attends to.
  int64_t FirstAttended(const State& state, size_t group) const {
    const int64_t window = model_.group_windows[group];
    return window > 0 ? std::max<int64_t>(0, state.num_computed - window + 1) : 0;
  }

  void CheckBlocks(const State& state) {
    ++epoch_;
    for (size_t g = 0; g < state.blocks.size(); ++g) {
      for (auto i = static_cast<size_t>(FirstAttended(state, g) / block_size_); i < state.blocks[g].size(); ++i) {
        const int32_t id = state.blocks[g][i];
        Require(id >= 1 && id <= num_blocks_, "a block id is out of range");
        Require(block_epoch_[static_cast<size_t>(id)] != epoch_, "a block is listed twice in one request's tables");
        block_epoch_[static_cast<size_t>(id)] = epoch_;
      }
    }
    for (const int32_t id : state.state_blocks) {
      Require(id >= 1 && id <= num_blocks_, "a block id of a state is out of range");
      Require(block_epoch_[static_cast<size_t>(id)] != epoch_, "a block of a state is used twice");
      block_epoch_[static_cast<size_t>(id)] = epoch_;
    }
  }

  // The value of block `index` of the recurrent state after the first num_tokens tokens.
  static uint64_t StateValue(const State& state, int64_t num_tokens, size_t index) {
    uint64_t value = 0;
    for (int64_t p = 0; p < num_tokens; ++p)
      value = FakeMix(value, static_cast<uint64_t>(state.tokens[static_cast<size_t>(p)]));
    return FakeMix(value, 7 + index);
  }

  // Checks the request's recurrent state, moves it over the tokens of the step, and writes its checkpoints.
  void MoveState(State& state, int64_t num_tokens, const SchedulerOutput& step) {
    const auto num_blocks = static_cast<size_t>(model_.num_state_blocks);
    Require(state.state_blocks.size() == num_blocks, "the recurrent state has the wrong number of blocks");
    if (num_blocks == 0) return Require(step.checkpoints.empty(), "a checkpoint without recurrent state");
    Require(state.num_computed >= state.num_state_tokens &&
                state.num_computed - state.num_state_tokens <= state.num_last_drafts,
            "the recurrent state does not belong to the computed tokens");
    const auto value = [&](int32_t block) -> uint64_t& { return kv_[static_cast<size_t>(block * block_size_)]; };
    for (size_t i = 0; i < num_blocks && state.num_state_tokens > 0; ++i) {
      Require(value(state.state_blocks[i]) == StateValue(state, state.num_state_tokens, i),
              "the recurrent state is wrong");
    }
    const int64_t begin = state.num_state_tokens;
    const auto num_drafts = static_cast<int64_t>(state.drafts.size());
    state.num_state_tokens = state.num_computed + num_tokens - num_drafts;
    state.num_last_drafts = num_drafts;
    int64_t last = begin;
    for (const ScheduledCheckpoint& checkpoint : step.checkpoints) {
      if (checkpoint.request_id != state.request->request_id) continue;
      Require(checkpoint.position > last && checkpoint.position <= state.num_state_tokens, "a checkpoint is misplaced");
      last = checkpoint.position;
      for (size_t i = 0; i < num_blocks; ++i) {
        value(step.checkpoint_block_ids[checkpoint.first_block + i]) = StateValue(state, checkpoint.position, i);
      }
    }
    for (size_t i = 0; i < num_blocks; ++i) {
      value(state.state_blocks[i]) = StateValue(state, state.num_state_tokens, i);
    }
  }

  void CheckKV(const State& state) {
    uint64_t kv = 0;
    for (int64_t p = 0; p < state.num_computed; ++p) {
      kv = FakeMix(kv, static_cast<uint64_t>(state.tokens[static_cast<size_t>(p)]));
      for (size_t g = 0; g < state.blocks.size(); ++g) {
        Require(p < FirstAttended(state, g) || KV(state, g, p) == kv, "the KV of a computed token is wrong");
      }
    }
  }

  void Run(State& state, int64_t num_tokens) {
    Require(state.listed_in_step == step_ && state.ran_in_step != step_, "scheduled twice, or not listed in this step");
    state.ran_in_step = step_;
    const auto known = static_cast<int64_t>(state.tokens.size());
    const auto num_drafts = static_cast<int64_t>(state.drafts.size());
    Require(num_tokens > 0 && state.num_computed + num_tokens <= known + num_drafts,
            "no tokens scheduled, or more than are known");
    Require(num_drafts == 0 || state.num_computed + num_tokens == known + num_drafts,
            "drafts, but not all known tokens");
    if (model_.check_kv) {
      CheckBlocks(state);
      CheckKV(state);
    }
    uint64_t kv = 0;
    if (model_.group_windows[0] == 1) {
      // The KV of earlier tokens is gone, so the model has only its recurrent state, which has been checked.
      for (int64_t p = 0; p < state.num_computed; ++p) {
        kv = FakeMix(kv, static_cast<uint64_t>(state.tokens[static_cast<size_t>(p)]));
      }
    } else if (state.num_computed > 0) {
      kv = KV(state, 0, state.num_computed - 1);
    }
    const int64_t first = state.first_in_step = state.num_computed;
    sampled_kv_.clear();
    for (int64_t i = 0; i < num_tokens; ++i, ++state.num_computed) {
      const auto position = static_cast<size_t>(state.num_computed);
      const int32_t token =
          position < state.tokens.size() ? state.tokens[position] : state.drafts[position - state.tokens.size()];
      kv = FakeMix(kv, static_cast<uint64_t>(token));
      for (size_t g = 0; g < state.blocks.size(); ++g) KV(state, g, state.num_computed) = kv;
      if (state.num_computed >= known - 1) sampled_kv_.push_back(kv);
    }
    AddPromptLogprobs(state, first, num_tokens);
    output_.request_ids.push_back(state.request->request_id);
    output_.logprobs_index.push_back(-1);
    output_.num_accepted_drafts.push_back(0);
    if (state.num_computed >= known && !model_.loses_tokens) SampleAll(state);
    state.drafts.clear();
    output_.sampled_offsets.push_back(output_.sampled_token_ids.size());
  }

  // Samples until a token differs from its draft, and takes back the drafts from there on.
  void SampleAll(State& state) {
    const auto num_known = static_cast<int64_t>(state.tokens.size());
    size_t num_sampled = 0;
    for (; num_sampled <= state.drafts.size(); ++num_sampled) {
      if (num_sampled > 0) {
        if (output_.sampled_token_ids.back() != state.drafts[num_sampled - 1]) break;
        state.tokens.push_back(state.drafts[num_sampled - 1]);
      }
      if (!Sample(state, sampled_kv_[num_sampled], num_sampled > 0)) break;
    }
    const auto num_accepted = static_cast<int64_t>(num_sampled > 0 ? num_sampled - 1 : 0);
    output_.num_accepted_drafts.back() = static_cast<int32_t>(num_accepted);
    state.num_computed = num_known + num_accepted;
    state.tokens.resize(static_cast<size_t>(num_known));
  }

  // Returns false if the logits are NaN. After a draft, that is no error: the next step computes them again.
  bool Sample(const State& state, uint64_t kv, bool after_draft) {
    if (model_.fails && model_.fails(*state.request, state.tokens)) {
      if (!after_draft) output_.failed.emplace_back(state.request->request_id, "logits are not numbers (nan)");
      return false;
    }
    const int32_t token = model_.next_token ? model_.next_token(*state.request, state.tokens)
                                            : FakeNextToken(kv, *state.request, vocab_size_);
    output_.sampled_token_ids.push_back(token);
    if (const auto k = state.request->sampling_params.logprobs) {
      if (output_.logprobs_index.back() < 0) {
        output_.logprobs_index.back() = static_cast<int32_t>(output_.logprobs.size());
        output_.logprobs.emplace_back();
      }
      if (model_.logprob) {
        AppendTopLogprobs(state.tokens, token, *k, output_.logprobs.back());
      } else {
        AppendLogprobs(token, *k, output_.logprobs.back());
      }
    }
    return true;
  }

  // Appends `token` and the k most probable tokens after `tokens`.
  void AppendTopLogprobs(const std::vector<int32_t>& tokens, int32_t token, int64_t k, Logprobs& logprobs) const {
    std::vector<std::pair<float, int32_t>> all;  // negated, so that they sort by descending logprob, then by id
    for (int32_t id = 0; id < vocab_size_; ++id) all.emplace_back(-model_.logprob(tokens, id), id);
    std::sort(all.begin(), all.end());
    all.resize(static_cast<size_t>(std::min(k, vocab_size_)));
    all.insert(all.begin(), {-model_.logprob(tokens, token), token});
    logprobs.width = all.size();
    for (const auto& [negated, id] : all) {
      logprobs.token_ids.push_back(id);
      logprobs.logprobs.push_back(-negated);
    }
    logprobs.ranks.push_back(1);
  }

  // Appends `token` and, as its k alternatives, the next k ids. Each has a probability of 2^-(1 + id mod 8).
  void AppendLogprobs(int32_t token, int64_t k, Logprobs& logprobs) const {
    logprobs.width = static_cast<size_t>(k + 1);
    for (int64_t i = 0; i <= k; ++i) {
      const auto id = static_cast<int32_t>((token + i) % vocab_size_);
      logprobs.token_ids.push_back(id);
      logprobs.logprobs.push_back(-0.6931472f * static_cast<float>(1 + id % 8));
    }
    logprobs.ranks.push_back(1);
  }

  void AddPromptLogprobs(const State& state, int64_t first, int64_t num_tokens) {
    const auto k = state.request->sampling_params.prompt_logprobs;
    if (!k) return;
    const auto num_prompt = static_cast<int64_t>(state.request->prompt_token_ids.size());
    Logprobs logprobs;
    for (int64_t p = first + 1; p <= first + num_tokens && p < num_prompt; ++p) {
      AppendLogprobs(state.tokens[static_cast<size_t>(p)], *k, logprobs);
    }
    if (!logprobs.empty()) output_.prompt_logprobs.emplace_back(state.request->request_id, std::move(logprobs));
  }

  FakeModel model_;
  int64_t vocab_size_;
  int64_t block_size_;
  int64_t num_blocks_ = 0;
  int64_t step_ = 0;
  const kernels::CancellationFlag* cancellation_ = nullptr;
  std::unordered_map<RequestId, State> states_;
  std::vector<uint64_t> kv_;
  std::vector<uint64_t> block_epoch_;
  uint64_t epoch_ = 0;
  std::vector<uint64_t> sampled_kv_;  // scratch: the KV of the last known token and of the drafts
  ModelRunnerOutput output_;
};

inline ExecutorFactory FakeExecutorFactory(FakeModel model = {}) {
  return [model](const VllmConfig& config) {
    return LoadedExecutor{std::make_unique<FakeExecutor>(config, model), {}};
  };
}

// A small configuration for an engine without a model.
inline VllmConfig FakeConfig() {
  VllmConfig config;
  config.model.vocab_size = 259;
  config.model.max_model_len = 256;
  config.cache.block_size = 16;
  config.scheduler.max_num_seqs = 8;
  config.scheduler.max_num_batched_tokens = 64;
  return config;
}

inline EngineCoreRequestPtr FakeRequest(RequestId id, std::vector<int32_t> prompt, int64_t max_tokens,
                                        SamplingParams params = {}) {
  auto request = std::make_shared<EngineCoreRequest>();
  request->request_id = id;
  request->prompt_token_ids = std::move(prompt);
  request->sampling_params = std::move(params);
  request->sampling_params.max_tokens = max_tokens;
  if (!request->sampling_params.seed) request->sampling_params.seed = id;
  request->arrival_time = std::chrono::steady_clock::now();
  return request;
}

}  // namespace vllm::testing
