// Sums over the tokens of a text, from which its perplexity and the difference between two models are computed. The
// formulas are those of llama.cpp's llama-perplexity. Plain values; not thread-safe. The order of Add and Merge decides
// the last bits of a result, so callers use a fixed one.
#pragma once

#include <cstdint>

namespace vllm::app {

struct Estimate {
  double value = 0;
  double uncertainty = 0;  // standard error, as if the values were independent
};

// A value per token, such as the negative log-likelihood in nats.
struct MeanSums {
  double sum = 0;
  double sum_of_squares = 0;
  int64_t count = 0;

  void Add(double value);
  void Merge(const MeanSums& other);
  // Returns the mean. Its uncertainty is 0 if there are fewer than two values. REQUIRES: count > 0.
  Estimate Mean() const;
  // Returns exp(mean), which is the perplexity if the values are negative log-likelihoods. REQUIRES: count > 0.
  Estimate ExpMean() const;
};

// The distributions of two models for the same tokens: P of the reference and Q of the model.
struct ComparisonSums {
  MeanSums nll;                // of the tokens of the text, by Q
  MeanSums reference_nll;      // by P
  MeanSums kl;                 // KL(P || Q) = sum of P log(P / Q) over the vocabulary, in nats
  MeanSums same_top;           // 1 if both have the same most probable token, 0 if not
  double sum_of_products = 0;  // of the two negative log-likelihoods of a token
  double max_kl = 0;

  void Add(double nll_of_token, double reference_nll_of_token, double kl_of_token, bool has_same_top);
  void Merge(const ComparisonSums& other);
  // Returns perplexity(Q) / perplexity(P). The uncertainty takes into account that both belong to the same tokens.
  // REQUIRES: the count of the sums is positive.
  Estimate PerplexityRatio() const;
};

}  // namespace vllm::app
