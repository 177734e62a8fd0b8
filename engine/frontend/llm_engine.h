// LLMEngine: the whole engine for a caller: requests in, RequestOutputs out. Owns the tokenizer's use, the
// InputProcessor, the OutputProcessor and the EngineCoreClient. Called from the front-end thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/core/engine_core_client.h"
#include "engine/frontend/metrics.h"
#include "engine/request/prompt.h"
#include "engine/request/request_output.h"
#include "engine/request/sampling_params.h"

namespace vllm {

class Tokenizer;

// How much of a prompt the engine has read, prefix-cache hits included.
struct PromptProgress {
  int64_t num_computed_tokens = 0;
  int64_t num_prompt_tokens = 0;
};

class LLMEngine {
 public:
  // The tokenizer may be null: then prompts are token ids and outputs have no text. REQUIRES: config is final.
  LLMEngine(const VllmConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
            std::unique_ptr<EngineCoreClient> client);
  ~LLMEngine();

  // Validates and queues. Throws RequestError naming field and value when the request is refused; the engine is
  // untouched then. While the outputs of earlier requests may need all of max_output_memory_bytes, the request waits
  // here; requests start in the order in which they were added. REQUIRES: request_id is not among the unfinished
  // requests.
  void AddRequest(const std::string& request_id, const Prompt& prompt, const SamplingParams& params,
                  const RequestOptions& options = {});

  // Stops a request. Its final RequestOutput (FinishReason::kAbort, with all tokens so far) comes from the next Step.
  // Unknown and finished ids are ignored.
  void AbortRequest(const std::string& request_id);

  // What has happened since the last call; waits up to `timeout` when nothing has. Outputs are valid until the next
  // call. Throws EngineDeadError; before that every pending request has been given a final output with
  // FinishReason::kError and the cause.
  const std::vector<RequestOutput>& Step(std::chrono::milliseconds timeout = std::chrono::milliseconds(100));

  bool HasUnfinishedRequests() const;
  int64_t NumUnfinishedRequests() const;

  // Readable while Step would not wait; -1 when there is no such descriptor.
  int OutputFd() const;
  const SchedulerStats& stats() const;  // as of the last Step
  // Of the last request added, as of the last Step. REQUIRES: it runs alone, with n = 1.
  PromptProgress prompt_progress() const;
  const FrontendMetrics& metrics() const;  // since start
  // As given, with model.max_model_len, cache.num_blocks and max_output_memory_bytes as the engine has them.
  const VllmConfig& config() const;
  int64_t max_model_len() const;
  const Tokenizer* tokenizer() const;
  EngineCoreClient& client();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vllm
