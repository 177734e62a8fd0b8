// ManyRequests: runs several prompts in one batch directly on the real executor, without a scheduler or a front end.
// Sampling is greedy, and results contain the logprobs of the whole vocabulary. Call it from one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/executor/make_executor.h"
#include "tests/support/test_isa.h"

namespace vllm::testing_support {

struct RequestResult {
  std::vector<int32_t> token_ids;
  Logprobs prompt_logprobs, logprobs;

  bool operator==(const RequestResult& other) const {
    const auto same = [](const Logprobs& a, const Logprobs& b) {
      return a.token_ids == b.token_ids && a.logprobs == b.logprobs && a.ranks == b.ranks;
    };
    return token_ids == other.token_ids && same(prompt_logprobs, other.prompt_logprobs) &&
           same(logprobs, other.logprobs);
  }
};

inline void PrintTo(const RequestResult& result, std::ostream* out) {
  for (const int32_t id : result.token_ids) *out << id << ' ';
}

class ManyRequests {
 public:
  explicit ManyRequests(const VllmConfig& config)
      : config_(WithTestIsa(config)), executor_(MakeExecutor(config_).executor) {
    executor_->DetermineAvailableMemory();
    num_groups_ = static_cast<int64_t>(executor_->KVGroupWindows().size());
    executor_->InitializeKVCache(kMaxRequests * (BlocksEach() + executor_->NumStateBlocks()));
  }

  // Returns num_outputs tokens per prompt, with logprobs. Each step computes up to `chunk` tokens of every unfinished
  // request. lora_slots: one per prompt, or empty. REQUIRES: at most kMaxRequests prompts.
  std::vector<RequestResult> Run(const std::vector<std::vector<int32_t>>& prompts, int64_t num_outputs, int64_t chunk,
                                 const std::vector<int32_t>& lora_slots = {}) {
    std::vector<RequestResult> results(prompts.size());
    std::vector<int64_t> computed(prompts.size(), 0), num_sent(prompts.size(), 0);
    const RequestId first_id = next_id_;
    next_id_ += prompts.size();
    for (bool busy = true; busy;) {
      busy = false;
      SchedulerOutput step;
      CachedRequestData& cached = step.scheduled_cached_reqs;
      for (size_t i = 0; i < prompts.size(); ++i) {
        if (static_cast<int64_t>(results[i].token_ids.size()) == num_outputs) continue;
        busy = true;
        const RequestId id = first_id + i;
        const auto total = static_cast<int64_t>(prompts[i].size() + results[i].token_ids.size());
        const int64_t count = std::min(chunk, total - computed[i]);
        if (computed[i] == 0) {
          const auto request = Request(id, prompts[i], num_outputs);
          if (!lora_slots.empty()) request->lora_slot = lora_slots[i];
          step.scheduled_new_reqs.push_back({request, Blocks(i), 0, StateBlocks(i)});
        } else {
          cached.request_ids.push_back(id);
          cached.resumed_from_preemption.push_back(0);
          cached.num_computed_tokens.push_back(computed[i]);
          for (; num_sent[i] < static_cast<int64_t>(results[i].token_ids.size()); ++num_sent[i]) {
            cached.new_token_ids.push_back(results[i].token_ids[static_cast<size_t>(num_sent[i])]);
          }
          cached.new_token_offsets.push_back(cached.new_token_ids.size());
          cached.new_block_offsets.push_back(0);
          cached.spec_token_offsets.push_back(0);
        }
        step.num_scheduled_tokens.push_back({id, count});
        step.total_num_scheduled_tokens += count;
        computed[i] += count;
      }
      if (busy) Collect(executor_->ExecuteModel(step), first_id, results);
    }
    SchedulerOutput forget;
    for (size_t i = 0; i < prompts.size(); ++i) forget.finished_req_ids.push_back(first_id + i);
    executor_->ExecuteModel(forget);
    return results;
  }

 private:
  static constexpr int64_t kMaxRequests = 8;

  // Number of blocks of one request, summed over the tables of all KV-cache groups.
  int64_t BlocksEach() const { return num_groups_ * (config_.model.max_model_len / config_.cache.block_size + 1); }
  std::vector<int32_t> Blocks(size_t request) const {
    std::vector<int32_t> blocks;
    for (int64_t i = 0; i < BlocksEach(); ++i) {
      blocks.push_back(static_cast<int32_t>(static_cast<int64_t>(request) + 1 + kMaxRequests * i));
    }
    // Descending order, so that no block table is the identity.
    std::reverse(blocks.begin(), blocks.end());
    return blocks;
  }
  // The blocks of the recurrent state follow those of all tables.
  std::vector<int32_t> StateBlocks(size_t request) const {
    std::vector<int32_t> blocks;
    for (int64_t i = 0; i < executor_->NumStateBlocks(); ++i) {
      blocks.push_back(static_cast<int32_t>(static_cast<int64_t>(request) + 1 + kMaxRequests * (BlocksEach() + i)));
    }
    return blocks;
  }
  static std::shared_ptr<EngineCoreRequest> Request(RequestId id, const std::vector<int32_t>& prompt,
                                                    int64_t num_outputs) {
    auto request = std::make_shared<EngineCoreRequest>();
    request->request_id = id;
    request->prompt_token_ids = prompt;
    request->sampling_params.temperature = 0.0;
    request->sampling_params.max_tokens = num_outputs;
    request->sampling_params.logprobs = -1;
    request->sampling_params.prompt_logprobs = -1;
    return request;
  }
  static void Collect(const ModelRunnerOutput& output, RequestId first_id, std::vector<RequestResult>& results) {
    EXPECT_TRUE(output.failed.empty());
    size_t sampled = 0;
    for (size_t i = 0; i < output.request_ids.size(); ++i) {
      RequestResult& result = results[output.request_ids[i] - first_id];
      for (; sampled < output.sampled_offsets[i + 1]; ++sampled) {
        result.token_ids.push_back(output.sampled_token_ids[sampled]);
      }
      if (output.logprobs_index[i] >= 0) {
        result.logprobs.Append(output.logprobs[static_cast<size_t>(output.logprobs_index[i])]);
      }
    }
    for (const auto& [id, logprobs] : output.prompt_logprobs) {
      results[id - first_id].prompt_logprobs.Append(logprobs);
    }
  }

  VllmConfig config_;
  std::unique_ptr<Executor> executor_;
  int64_t num_groups_ = 1;
  RequestId next_id_ = 1;
};

}  // namespace vllm::testing_support
