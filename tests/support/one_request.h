// OneRequest: runs one request at a time directly on the real executor, without a scheduler or a front end. This is the
// shortest way from a prompt to greedy tokens and logprobs. Call it from one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/executor/make_executor.h"
#include "tests/support/test_isa.h"

namespace vllm::testing_support {

class OneRequest {
 public:
  explicit OneRequest(const VllmConfig& config,
                      const std::function<LoadedExecutor(const VllmConfig&)>& make_executor = MakeExecutor)
      : config_(WithTestIsa(config)), loaded_(make_executor(config_)), executor_(loaded_.executor.get()) {
    executor_->DetermineAvailableMemory();
    num_groups_ = static_cast<int64_t>(executor_->KVGroupWindows().size());
    executor_->InitializeKVCache(num_groups_ * (config_.model.max_model_len / config_.cache.block_size + 1) +
                                 executor_->NumStateBlocks());
  }

  // Computes the prompt in chunks of up to `chunk` tokens, then one token per step. Returns max_tokens tokens. Sets
  // output_logprobs and prompt_output (the prompt logprobs) if they are requested.
  std::vector<int32_t> Greedy(const std::vector<int32_t>& prompt, int64_t max_tokens, int64_t chunk,
                              std::optional<int64_t> logprobs = std::nullopt,
                              std::optional<int64_t> prompt_logprobs = std::nullopt) {
    auto request = std::make_shared<EngineCoreRequest>();
    request->request_id = next_id_++;
    request->prompt_token_ids = prompt;
    request->sampling_params.temperature = 0.0;
    request->sampling_params.max_tokens = max_tokens;
    request->sampling_params.logprobs = logprobs;
    request->sampling_params.prompt_logprobs = prompt_logprobs;
    request->lora_slot = lora_slot;
    output_logprobs.Clear();
    prompt_output.Clear();

    std::vector<int32_t> blocks;
    // Block ids descend through the tables of all groups, so that no table is the identity.
    const int64_t num_blocks = num_groups_ * (config_.model.max_model_len / config_.cache.block_size);
    for (int64_t i = 0; i < num_blocks; ++i) blocks.push_back(static_cast<int32_t>(num_blocks - i));
    std::vector<int32_t> state_blocks;
    for (int64_t i = 0; i < executor_->NumStateBlocks(); ++i) {
      state_blocks.push_back(static_cast<int32_t>(num_blocks + 1 + i));
    }
    std::vector<int32_t> output;
    int64_t computed = 0;
    size_t num_sent = 0;
    bool first = true;
    while (static_cast<int64_t>(output.size()) < max_tokens) {
      SchedulerOutput step;
      const int64_t total = static_cast<int64_t>(prompt.size() + output.size());
      const int64_t n = std::min(chunk, total - computed);
      if (first) {
        step.scheduled_new_reqs.push_back({request, blocks, 0, state_blocks});
        first = false;
      } else {
        CachedRequestData& cached = step.scheduled_cached_reqs;
        cached.request_ids.push_back(request->request_id);
        cached.resumed_from_preemption.push_back(0);
        cached.num_computed_tokens.push_back(computed);
        for (; num_sent < output.size(); ++num_sent) cached.new_token_ids.push_back(output[num_sent]);
        cached.new_token_offsets.push_back(cached.new_token_ids.size());
        cached.new_block_offsets.push_back(0);
        cached.spec_token_offsets.push_back(0);
      }
      step.num_scheduled_tokens.push_back({request->request_id, n});
      step.total_num_scheduled_tokens = n;
      const ModelRunnerOutput& result = executor_->ExecuteModel(step);
      computed += n;
      EXPECT_TRUE(result.failed.empty());
      for (const int32_t token : result.sampled_token_ids) output.push_back(token);
      for (const Logprobs& l : result.logprobs) output_logprobs.Append(l);
      for (const auto& [id, l] : result.prompt_logprobs) prompt_output.Append(l);
    }
    SchedulerOutput forget;
    forget.finished_req_ids.push_back(request->request_id);
    executor_->ExecuteModel(forget);
    return output;
  }

  const LoadReport& load_report() const { return loaded_.report; }

  Logprobs output_logprobs, prompt_output;
  int32_t lora_slot = -1;  // of the next requests

 private:
  VllmConfig config_;
  LoadedExecutor loaded_;
  Executor* executor_;
  int64_t num_groups_ = 1;
  RequestId next_id_ = 1;
};

}  // namespace vllm::testing_support
