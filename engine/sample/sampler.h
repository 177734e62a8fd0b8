// Sampler: one row of logits to one token, in vLLM's order of operations. A row's result depends on nothing but the
// row: its logits, its parameters, its tokens so far, its seed and position. Holds scratch of the vocabulary's size;
// one Sampler a thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/request/logprobs.h"
#include "engine/request/sampling_params.h"

namespace vllm {

struct SamplingRow {
  std::span<float> logits;  // [vocab_size], raw; overwritten
  const SamplingParams* params = nullptr;
  std::span<const int32_t> prompt_token_ids;
  std::span<const int32_t> output_token_ids;  // sampled so far; the new token's position is prompt + output
};

class Sampler {
 public:
  explicit Sampler(int64_t vocab_size);

  // Samples one token without allocating after warm-up. `logprobs` (may be null) gets one position appended when params
  // ask for logprobs. Returns -1 and sets `error` when the logits hold NaN or +inf, or when nothing remains to choose
  // from.
  int32_t Sample(const SamplingRow& row, Logprobs* logprobs, std::string& error);

  // Appends the logprob, rank and top num_logprobs (-1: all) of `token_id` under raw `logits`.
  void AppendLogprobs(std::span<const float> logits, int32_t token_id, int64_t num_logprobs, Logprobs& out);

  // The exact distribution that Sample draws from, [vocab_size]; for tests. Overwrites row.logits.
  std::vector<double> Distribution(const SamplingRow& row);

 private:
  struct Scratch;
  int64_t vocab_size_;
  std::vector<float> scratch_;
};

}  // namespace vllm
