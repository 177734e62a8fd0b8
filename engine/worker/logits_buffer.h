// LogitsBuffer: the logits of a step's rows and the results of sampling them. Owned by the executor and shared by all
// ranks. Each rank computes its columns of the logits, then samples its share of the rows. A barrier follows each
// of these two phases, so no rank reads what another rank is still writing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/sched/model_runner_output.h"
#include "kernels/matrix/aligned_buffer.h"

namespace vllm {

struct LogitsBuffer {
  struct RowResult {
    int32_t token_id = -1;
    float score = 0.0f;  // of a request with PoolingParams
    bool has_logprobs = false;
    Logprobs logprobs;
    std::string error;
  };

  // Throws std::bad_alloc.
  explicit LogitsBuffer(const VllmConfig& config)
      : logits(static_cast<size_t>(Bytes(config))),
        results(static_cast<size_t>(config.scheduler.max_num_batched_tokens)) {}

  // Returns the maximum number of logits rows computed at a time. A step with more rows takes several rounds.
  static int64_t MaxRows(const VllmConfig& config);
  static int64_t Bytes(const VllmConfig& config) {
    return MaxRows(config) * config.model.vocab_size * static_cast<int64_t>(sizeof(float));
  }

  kernels::AlignedBuffer logits;   // [MaxRows, vocab_size]
  std::vector<RowResult> results;  // [max_num_batched_tokens], for all rounds of a step
};

}  // namespace vllm
