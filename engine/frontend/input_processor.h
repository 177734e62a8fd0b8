// InputProcessor: turns a caller's prompt and SamplingParams into a validated request. It holds the limits of the model
// and the configuration but no requests, so `batch --check` can use it without an engine. Owned by LLMEngine or by
// `batch --check`; called from the front-end thread.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/request/pooling_params.h"
#include "engine/request/prompt.h"
#include "engine/request/sampling_params.h"

namespace vllm::tokenizer {
class Tokenizer;
}

namespace vllm {

class GrammarCompiler;
class GrammarFuture;
struct ReasoningFormat;

// A request before it is split into n sequences.
struct ProcessedInput {
  std::vector<int32_t> prompt_token_ids;
  SamplingParams params;                             // with n sequences, of which the request returns num_returned
  std::vector<int32_t> prior_output_token_ids = {};  // see RequestOptions
  std::shared_ptr<const ReasoningFormat> reasoning_format = nullptr;  // see EngineCoreRequest
  // Null unless the parameters have structured_outputs. The grammar may still be compiled, and may be rejected.
  std::shared_ptr<const GrammarFuture> grammar = nullptr;
  std::string external_req_id = {};
  int32_t lora_slot = -1;  // both as in EngineCoreRequest
  std::string lora_digest = {};
  int64_t num_returned = 1;
  std::optional<PoolingParams> pooling_params = {};  // both as in EngineCoreRequest
  std::vector<int32_t> token_type_ids = {};
};

class InputProcessor {
 public:
  // `tokenizer` may be null and must outlive this object. `max_model_len` is the engine's limit, which may be smaller
  // than the model's. Requests whose outputs may take more than `max_output_memory` bytes are rejected.
  InputProcessor(const VllmConfig& config, int64_t max_model_len, const tokenizer::Tokenizer* tokenizer,
                 int64_t max_output_memory = std::numeric_limits<int64_t>::max());
  ~InputProcessor();

  // Sets the format of the model's thinking, or null. Requests with a thinking_token_budget are rejected without one.
  void SetReasoningFormat(std::shared_ptr<const ReasoningFormat> format) { reasoning_format_ = std::move(format); }

  // See LLMEngine::SetMaxModelLen.
  void SetMaxModelLen(int64_t max_model_len) { max_model_len_ = max_model_len; }

  // Returns the validated request. `prior_output_token_ids` as in RequestOptions. Throws a RequestError that names
  // the field, EncodingStopped from the tokenizer, or ResourceError as LLMEngine::SetMaxModelLen and
  // GrammarCompiler::Compile say. Does not wait for the grammar.
  ProcessedInput Process(std::string_view request_id, const Prompt& prompt, const SamplingParams& params,
                         std::span<const int32_t> prior_output_token_ids = {}) const;
  // Returns the validated request for a vector or for scores. Throws a RequestError that names the field.
  ProcessedInput ProcessPooling(std::string_view request_id, const PoolingPrompt& prompt,
                                const PoolingParams& params) const;
  // Chooses the adapter of the request. `name` is RequestOptions::lora. Throws a RequestError if there is no such
  // adapter.
  void SetLoRA(const std::optional<std::string>& name, ProcessedInput& input) const;
  // Adds an adapter, which later requests may choose. It replaces one with the same name.
  void AddLoRA(std::shared_ptr<const LoRAAdapter> adapter) { lora_.adapters.push_back(std::move(adapter)); }
  // Waits for the grammar of the input, if it has one. Throws a RequestError if it is rejected.
  void CheckGrammar(const ProcessedInput& input) const;

  GrammarCompiler& grammar_compiler() { return *grammar_compiler_; }

 private:
  std::vector<int32_t> TokenIds(const Prompt& prompt) const;
  void SetEos(SamplingParams& params) const;
  // Unless ignore_eos is set, adds the model's second and later EOS ids to stop_token_ids.
  void AddOtherEos(SamplingParams& params) const;
  void EncodeBadWords(SamplingParams& params) const;
  void CheckIds(const char* field, std::span<const int32_t> token_ids) const;
  void CheckPrompt(const std::vector<int32_t>& prompt_token_ids) const;
  // Checks that at least one token may follow the prior ones. REQUIRES: FitLengths was called.
  void CheckPrior(std::span<const int32_t> prior_output_token_ids, int64_t num_prompt_tokens,
                  const SamplingParams& params) const;
  void CheckStopUtf8(const SamplingParams& params) const;
  // Starts to compile the grammar of structured_outputs.
  void SetGrammar(ProcessedInput& input) const;
  // Limits max_tokens to the number of tokens that fit after the prompt, which is also the default, and min_tokens to
  // max_tokens.
  void FitLengths(int64_t num_prompt_tokens, SamplingParams& params) const;

  int64_t vocab_size_;
  int64_t type_vocab_size_;
  int64_t hidden_size_;
  PoolerConfig pooler_;
  int64_t max_model_len_;
  const int64_t max_kv_tokens_;  // that one request may have in the KV cache
  int64_t max_logprobs_;
  int64_t max_output_memory_;
  uint64_t seed_;
  std::vector<int32_t> eos_token_ids_;
  LoRAConfig lora_;
  const tokenizer::Tokenizer* tokenizer_;
  std::shared_ptr<const ReasoningFormat> reasoning_format_;
  bool enable_in_reasoning_;
  std::unique_ptr<GrammarCompiler> grammar_compiler_;
};

// Derives a seed for a request that has none, from the engine's seed and the request id only, so that sampled text does
// not depend on the order of requests or on other requests. The result is the same in every version and on every
// machine.
uint64_t DeriveSeed(uint64_t engine_seed, std::string_view request_id);

}  // namespace vllm
