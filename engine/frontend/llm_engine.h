// LLMEngine: the whole engine for a caller: takes requests, returns RequestOutputs. Owns the InputProcessor, the
// AdmissionQueue, the OutputProcessor and the EngineCoreClient. Called from the front-end thread only.
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

namespace vllm::tokenizer {
class Tokenizer;
}

namespace vllm {

// How many tokens of a prompt are computed, including prefix-cache hits.
struct PromptProgress {
  int64_t num_computed_tokens = 0;
  int64_t num_prompt_tokens = 0;
};

class LLMEngine {
 public:
  // Without a tokenizer (null), prompts are token ids and outputs have no text. REQUIRES: config is final.
  LLMEngine(const VllmConfig& config, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
            std::unique_ptr<EngineCoreClient> client);
  ~LLMEngine();

  // Validates and queues a request. Throws RequestError that names field and value if the request is rejected; the
  // engine is unchanged then. The request waits here while the outputs of earlier requests may need all of
  // max_output_memory_bytes; requests start in the order in which they were added. REQUIRES: no unfinished request has
  // this id.
  void AddRequest(const std::string& request_id, const Prompt& prompt, const SamplingParams& params,
                  const RequestOptions& options = {});

  // Aborts a request. Its final RequestOutput (FinishReason::kAbort, with all tokens so far) comes from the next Step.
  // Ignores unknown and finished ids.
  void AbortRequest(const std::string& request_id);

  // Returns the outputs since the last call; waits up to `timeout` if there are none. They are valid until the next
  // call. Throws EngineDeadError after every pending request was given a final output with FinishReason::kError and the
  // cause.
  const std::vector<RequestOutput>& Step(std::chrono::milliseconds timeout = std::chrono::milliseconds(100));

  bool HasUnfinishedRequests() const;
  int64_t NumUnfinishedRequests() const;

  // A descriptor that is readable while Step would not wait; -1 if there is none.
  int OutputFd() const;
  const SchedulerStats& stats() const;  // as of the last Step
  // Progress of the last request added, as of the last Step. REQUIRES: no other request runs, and n = 1.
  PromptProgress prompt_progress() const;
  const FrontendMetrics& metrics() const;  // since start
  // The configuration, with the engine's model.max_model_len, cache.num_blocks and max_output_memory_bytes.
  const VllmConfig& config() const;
  int64_t max_model_len() const;
  const tokenizer::Tokenizer* tokenizer() const;
  EngineCoreClient& client();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vllm
