// PoolingParams: what a request that generates no tokens returns, as in vLLM. Plain values; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

namespace vllm {

enum class PoolingTask : uint8_t {
  kEmbed,  // a vector
  kScore,  // the scores of the model's classifier
};

struct PoolingParams {
  PoolingTask task = PoolingTask::kEmbed;
  // The vector is cut to this many dimensions, before it is normalized. 0: PoolerConfig::truncate_dim.
  int64_t dimensions = 0;
  std::optional<bool> normalize = {};  // none: PoolerConfig::normalize
  // The number of the text's first tokens that are a prompt (PoolerConfig::include_prompt).
  int64_t num_instruction_tokens = 0;
  // The hidden states of all tokens are needed, so the request does not read the prefix cache. Set by the
  // InputProcessor.
  bool needs_all_tokens = false;
};

}  // namespace vllm
