// Prompt and RequestOptions: the arguments of LLMEngine::AddRequest other than the request id and the
// SamplingParams. Plain values; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace vllm {

struct TextPrompt {
  std::string text;
  // Whether the tokenizer adds special tokens such as BOS. A rendered chat template already contains them.
  bool add_special_tokens = true;
};
using Prompt = std::variant<TextPrompt, std::vector<int32_t>>;

// The tokens of a text, or of a pair of texts, that is turned into a vector or into scores. Special tokens included.
struct PoolingPrompt {
  std::vector<int32_t> token_ids;
  std::vector<int32_t> token_type_ids = {};  // as in EngineCoreRequest
};

struct RequestOptions {
  int64_t priority = 0;    // see EngineCoreRequest
  std::string cache_salt;  // only requests with the same salt share cached prefixes
  // Name of the LoRA adapter; empty: the base model; none: LoRAConfig::default_lora.
  std::optional<std::string> lora = {};
  // Tokens that an earlier run of the same request sampled before it was aborted. The request continues after them and
  // samples what the earlier run would have sampled. They count as output for max_tokens, min_tokens and penalties.
  // Outputs contain only the tokens and the text after them. REQUIRES: n = 1.
  std::vector<int32_t> prior_output_token_ids = {};
  // A user waits for this request while others, such as those of a batch, may wait. It runs before all requests that
  // are not interactive, in spite of their priorities and of max_output_memory_bytes, and may preempt them. Adding it
  // cancels a step that has no interactive request. Until it has computed its prompt, only interactive requests run;
  // after that, until it ends, other requests run in some of the steps only, and these stay short
  // (Scheduler::kSharedStepTokens, kMaxStepsAlone).
  bool interactive = false;
};

}  // namespace vllm
