// Sampler: samples one token from one row of logits, in vLLM's order of operations. The result depends only on the row,
// that is, on its logits, parameters, tokens so far, seed and position. Contains scratch of vocabulary size, so each
// thread has its own Sampler. Owned by the ModelRunner.
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
  std::span<float> logits;  // [vocab_size], as the model computed them; overwritten
  const SamplingParams* params = nullptr;
  std::span<const int32_t> prompt_token_ids = {};
  std::span<const int32_t> output_token_ids = {};  // sampled so far; the new token follows them
  int32_t forced_token_id = -1;                    // at least 0: the new token, chosen without sampling
  // If not empty, only tokens t with bit t % 32 of word t / 32 are sampled. [(vocab_size + 31) / 32]
  std::span<const uint32_t> bitmask = {};
  bool must_stop = false;  // `bitmask` has only tokens that end the output, so min_tokens does not apply
};

class Sampler {
 public:
  // `kernels` must outlive the sampler. With `processed_logprobs`, Sample appends the logprobs of the distribution that
  // it draws from, instead of those of the logits as the model computed them.
  explicit Sampler(int64_t vocab_size, const kernels::Kernels& kernels = kernels::KernelsFor(kernels::BestIsa()),
                   bool processed_logprobs = false);

  // Samples one token and returns its id. Appends one position to `logprobs` (may be null) if the params request
  // logprobs. Returns -1, sets `error` and appends nothing if logits are NaN or +inf, before or after the logits
  // processors, or if no token remains. Allocates only to grow `logprobs` and to set `error`. REQUIRES: row.logits has
  // vocab_size entries; params are normalized.
  int32_t Sample(const SamplingRow& row, Logprobs* logprobs, std::string& error);

  // Appends one position to `out`: the logprob and rank of `token_id`, and the num_logprobs most probable tokens (-1:
  // all) with their logprobs, computed from `logits` without any processing. If `logits` contains NaN or +inf, or only
  // -inf, the logprobs are NaN. REQUIRES: token_id is in the vocabulary.
  void AppendLogprobs(std::span<const float> logits, int32_t token_id, int64_t num_logprobs, Logprobs& out);

  // Returns the distribution that Sample draws from, [vocab_size]; all 0 if Sample would return -1. Overwrites
  // row.logits. For tests.
  std::vector<double> Distribution(const SamplingRow& row);

 private:
  // The set of tokens to draw from, after all processing.
  enum class Support : uint8_t {
    kNone,        // empty; `error` says why
    kArgMax,      // one token: the row is greedy
    kCandidates,  // candidates(); their weights are set
    kVocabulary,  // all tokens; block_sums() has the sums of their weights
  };
  Support Process(const SamplingRow& row, std::string& error);
  int32_t Draw(Support support, const SamplingRow& row) const;
  static bool ChangesLogits(const SamplingRow& row);
  void AppendInvalid(size_t k, Logprobs& out) const;
  // Appends the logprobs of the distribution that a token was drawn from. Tokens outside of it are never among the most
  // probable: ids of -1 with logprobs of -inf fill their places. A greedy row's distribution is that at temperature 1.
  void AppendProcessedLogprobs(Support support, const SamplingRow& row, int32_t token_id, Logprobs& out);

  int64_t vocab_size_;
  bool processed_logprobs_;
  const kernels::RowKernels* row_kernels_;
  LogitsProcessors processors_;
  TopKTopPSampler top_k_top_p_sampler_;
  std::vector<float> raw_logits_;  // the row before the logits processors, if they run and logprobs are requested
  double total_ = 0.0;             // sum of the weights of the support
  float inverse_temperature_ = 1.0f;
};

}  // namespace vllm
