// LLMEngine: the engine's public interface. Takes requests and returns RequestOutputs. Owns the InputProcessor, the
// AdmissionQueue, the OutputProcessor and the EngineCoreClient; owned by its caller. Called from the front-end thread
// only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/core/engine_core_client.h"
#include "engine/frontend/metrics.h"
#include "engine/request/pooling_params.h"
#include "engine/request/prompt.h"
#include "engine/request/request_output.h"
#include "engine/request/sampling_params.h"

namespace vllm::tokenizer {
class Tokenizer;
}

namespace vllm {

struct ReasoningFormat;

// The progress of a prompt. Computed tokens include prefix-cache hits.
struct PromptProgress {
  int64_t num_computed_tokens = 0;
  int64_t num_prompt_tokens = 0;
};

class LLMEngine {
 public:
  // If `tokenizer` is null, prompts must be token ids and outputs have no text. REQUIRES: config.Finalize() has been
  // called.
  LLMEngine(const VllmConfig& config, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
            std::unique_ptr<EngineCoreClient> client);
  ~LLMEngine();

  // Sets how this model marks its thinking; null: unknown. Requests with a thinking_token_budget need a format.
  void SetReasoningFormat(std::shared_ptr<const ReasoningFormat> format);

  // Validates and queues a request. If the request is invalid or its id belongs to an unfinished request, leaves the
  // engine unchanged and throws a RequestError that names the field. Throws EngineDeadError if the engine is dead. The
  // request stays queued in the front end while its outputs, together with those of earlier unfinished requests, could
  // exceed max_output_memory_bytes. Requests enter the engine in the order in which they were added, but interactive
  // ones at once. A request with structured_outputs enters when another thread has compiled its grammar, and others go
  // ahead meanwhile. If the grammar is rejected, the request ends with an output with `rejected`. Blocks only while the
  // engine's input queue is full.
  void AddRequest(const std::string& request_id, const Prompt& prompt, const SamplingParams& params,
                  const RequestOptions& options = {});

  // Queues a request that samples no token. Its RequestOutput has the vector or the scores in `pooled`. Throws as
  // AddRequest does. Ignores options.prior_output_token_ids.
  void AddPoolingRequest(const std::string& request_id, const PoolingPrompt& prompt, const PoolingParams& params,
                         const RequestOptions& options = {});

  // Loads a LoRA adapter, which later requests may choose by its name. It replaces one with the same name, but requests
  // that were added before keep theirs. Waits for the end of the current step. Throws ModelError if it does not fit the
  // model, ResourceError, and EngineDeadError.
  void AddLoRA(std::shared_ptr<const LoRAAdapter> adapter);

  // Aborts a request. The next Step returns its final RequestOutput, in which each unfinished sequence has
  // FinishReason::kAbort and its tokens so far (if outputs are deltas: the tokens not yet returned). Ignores unknown
  // ids and ids of finished requests.
  void AbortRequest(const std::string& request_id);

  // Returns the outputs since the last call, valid until the next call. If there are none but requests are running,
  // waits up to `timeout`. Once the engine has died, the next call returns a final output with FinishReason::kError and
  // the cause for each unfinished request. A call throws EngineDeadError if there is no output left to return.
  const std::vector<RequestOutput>& Step(std::chrono::milliseconds timeout = std::chrono::milliseconds(100));

  bool HasUnfinishedRequests() const;
  int64_t NumUnfinishedRequests() const;

  // Returns a descriptor for poll() that is readable while outputs, an abort or the engine's failure are pending for
  // Step; -1 with InprocClient.
  int OutputFd() const;
  // As of the last Step. Sequences whose grammars are being compiled count as waiting.
  const SchedulerStats& stats() const;
  // Returns the progress of the last added request as of the last Step; too high if other requests ran meanwhile.
  // REQUIRES: n = 1.
  PromptProgress prompt_progress() const;
  const FrontendMetrics& metrics() const;  // since start
  // Returns the configuration, with the values that the engine has set for model.max_model_len, cache.num_blocks and
  // max_output_memory_bytes.
  const VllmConfig& config() const;
  // Returns the largest number of tokens that a request may have, prompt and output together.
  int64_t max_model_len() const;
  // Changes max_model_len() for later requests, so that they end where they would with a KV cache of another size. If
  // it is larger than the engine's own, AddRequest throws ResourceError for a request that could need more tokens than
  // the KV cache has. REQUIRES: max_model_len >= 1.
  void SetMaxModelLen(int64_t max_model_len);
  // Returns a warning for the user, for example that the trace cannot be written, or an empty string. Returns each
  // warning once.
  std::string TakeWarning();
  const tokenizer::Tokenizer* tokenizer() const;
  EngineCoreClient& client();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vllm
