// InputProcessor: a caller's prompt and SamplingParams -> a validated request. It holds the limits of the model and the
// configuration and no state of requests, so it also works without an engine (`batch --check`). Owned by LLMEngine or
// by the caller, called from the front-end thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/request/prompt.h"
#include "engine/request/sampling_params.h"

namespace vllm {

class Tokenizer;

// What the engine gets, before it is split into n sequences.
struct ProcessedInput {
  std::vector<int32_t> prompt_token_ids;
  SamplingParams params;
};

class InputProcessor {
 public:
  // `tokenizer` may be null and must outlive this. `max_model_len` is the engine's, not the model's. A request whose
  // output may take more than `max_output_memory` bytes is refused.
  InputProcessor(const VllmConfig& config, int64_t max_model_len, const Tokenizer* tokenizer,
                 int64_t max_output_memory = std::numeric_limits<int64_t>::max());

  // Throws RequestError naming the field and its value.
  ProcessedInput Process(std::string_view request_id, const Prompt& prompt, const SamplingParams& params) const;

 private:
  std::vector<int32_t> TokenIds(const Prompt& prompt) const;
  void SetEos(SamplingParams& params) const;
  // The model's end tokens after the first become stop ids.
  void AddOtherEos(SamplingParams& params) const;
  void EncodeBadWords(SamplingParams& params) const;
  void CheckPrompt(const std::vector<int32_t>& prompt_token_ids) const;
  void CheckStop(const SamplingParams& params) const;
  // Limits max_tokens and min_tokens to what fits behind the prompt.
  void FitLengths(int64_t num_prompt_tokens, SamplingParams& params) const;

  int64_t vocab_size_;
  int64_t max_model_len_;
  int64_t max_logprobs_;
  int64_t max_output_memory_;
  uint64_t seed_;
  std::vector<int32_t> eos_token_ids_;
  const Tokenizer* tokenizer_;
};

// The seed of a request that brings none: a function of the engine's seed and the caller's request id alone, so that
// sampled text does not depend on order or company. Stable between versions and machines.
uint64_t DeriveSeed(uint64_t engine_seed, std::string_view request_id);

}  // namespace vllm
