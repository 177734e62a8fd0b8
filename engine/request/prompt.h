// Prompt and RequestOptions: the arguments of LLMEngine::AddRequest other than the request id and the
// SamplingParams. Plain values; not thread-safe.
#pragma once

#include <cstdint>
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

struct RequestOptions {
  int64_t priority = 0;    // see EngineCoreRequest
  std::string cache_salt;  // only requests with the same salt share cached prefixes
};

}  // namespace vllm
