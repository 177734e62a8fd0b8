#include "app/perplexity/score_sums.h"

#include <algorithm>
#include <cmath>

namespace vllm::app {

void MeanSums::Add(double value) {
  sum += value;
  sum_of_squares += value * value;
  ++count;
}

void MeanSums::Merge(const MeanSums& other) {
  sum += other.sum;
  sum_of_squares += other.sum_of_squares;
  count += other.count;
}

Estimate MeanSums::Mean() const {
  const auto n = static_cast<double>(count);
  Estimate mean{sum / n, 0};
  // Rounding can make the variance of equal values slightly negative.
  if (count > 1) mean.uncertainty = std::sqrt(std::max(0.0, sum_of_squares / n - mean.value * mean.value) / (n - 1));
  return mean;
}

Estimate MeanSums::ExpMean() const {
  const Estimate mean = Mean();
  return {std::exp(mean.value), std::exp(mean.value) * mean.uncertainty};
}

void ComparisonSums::Add(double nll_of_token, double reference_nll_of_token, double kl_of_token, bool has_same_top) {
  nll.Add(nll_of_token);
  reference_nll.Add(reference_nll_of_token);
  kl.Add(kl_of_token);
  same_top.Add(has_same_top ? 1 : 0);
  sum_of_products += nll_of_token * reference_nll_of_token;
  max_kl = std::max(max_kl, kl_of_token);
}

void ComparisonSums::Merge(const ComparisonSums& other) {
  nll.Merge(other.nll);
  reference_nll.Merge(other.reference_nll);
  kl.Merge(other.kl);
  same_top.Merge(other.same_top);
  sum_of_products += other.sum_of_products;
  max_kl = std::max(max_kl, other.max_kl);
}

Estimate ComparisonSums::PerplexityRatio() const {
  const Estimate own = nll.Mean();
  const Estimate reference = reference_nll.Mean();
  const double ratio = std::exp(own.value - reference.value);
  if (nll.count < 2) return {ratio, 0};
  const auto n = static_cast<double>(nll.count);
  const double covariance = (sum_of_products / n - own.value * reference.value) / (n - 1);
  const double variance =
      own.uncertainty * own.uncertainty + reference.uncertainty * reference.uncertainty - 2 * covariance;
  return {ratio, ratio * std::sqrt(std::max(0.0, variance))};
}

}  // namespace vllm::app
