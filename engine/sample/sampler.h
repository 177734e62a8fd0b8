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
#include "engine/sample/logits_processors.h"
#include "engine/sample/top_k_top_p_sampler.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/kernels.h"

namespace vllm {

struct SamplingRow {
  std::span<float> logits;  // [vocab_size], raw; overwritten
  const SamplingParams* params = nullptr;
  std::span<const int32_t> prompt_token_ids;
  std::span<const int32_t> output_token_ids;  // sampled so far; the new token's position is prompt + output
};

class Sampler {
 public:
  // `kernels` must outlive the sampler.
  explicit Sampler(int64_t vocab_size, const Kernels& kernels = KernelsFor(BestIsa()));

  // Samples one token without allocating, but for what `logprobs` grows by. `logprobs` (may be null) gets one position
  // appended when params ask for logprobs. Returns -1 and sets `error` when the logits hold NaN or +inf, or when
  // nothing remains to choose from. REQUIRES: row.logits has vocab_size entries; params are normalized.
  int32_t Sample(const SamplingRow& row, Logprobs* logprobs, std::string& error);

  // Appends the logprob, rank and top num_logprobs (-1: all) of `token_id` under raw `logits`. Where these hold NaN or
  // +inf, or nothing else than -inf, the logprobs are NaN. REQUIRES: token_id is in the vocabulary.
  void AppendLogprobs(std::span<const float> logits, int32_t token_id, int64_t num_logprobs, Logprobs& out);

  // The exact distribution that Sample draws from, [vocab_size]; for tests. All 0 where Sample would return -1.
  // Overwrites row.logits.
  std::vector<double> Distribution(const SamplingRow& row);

 private:
  // What a row's token is drawn from, after all processing.
  enum class Support : uint8_t {
    kNone,        // nothing: `error` says why
    kArgMax,      // one token: the row is greedy
    kCandidates,  // selector_.candidates(), weighed
    kVocabulary,  // everything, weighed in selector_.block_sums()
  };
  Support Process(const SamplingRow& row, std::string& error);
  int32_t Draw(Support support, const SamplingRow& row) const;
  void AppendInvalid(size_t k, Logprobs& out) const;

  int64_t vocab_size_;
  const RowKernels* row_kernels_;
  LogitsProcessors processors_;
  TopKTopPSampler selector_;
  std::vector<float> raw_;  // the row before processing, when its logprobs are wanted
  double total_ = 0.0;      // the support's weight
  float inverse_temperature_ = 1.0f;
};

}  // namespace vllm
