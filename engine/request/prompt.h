// What a caller gives LLMEngine::AddRequest besides SamplingParams. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace vllm {

struct TextPrompt {
  std::string text;
  // Adds special tokens such as BOS. A rendered chat template already contains them.
  bool add_special_tokens = true;
};
using Prompt = std::variant<TextPrompt, std::vector<int32_t>>;

struct RequestOptions {
  int64_t priority = 0;
  std::string cache_salt;
};

}  // namespace vllm
