// The measure of quantized models: how far log-probabilities are from those of the dequantized weights in float32, in
// spreads of their position's logits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace vllm::testing_support {

// Of what is computed on stored codes in float32: nothing but the order of sums differs.
inline constexpr double kDequantizedLimit = 1e-4;

// The standard deviation.
template <typename T>
double Spread(std::span<const T> row) {
  const auto count = static_cast<double>(row.size());
  double mean = 0.0, squares = 0.0;
  for (const T x : row) mean += x / count;
  for (const T x : row) squares += (x - mean) * (x - mean) / count;
  return std::sqrt(squares);
}

// The largest difference; infinite where sizes differ or a number is none. got, expected: [num_positions, vocab_size].
inline double WorstInSpreads(std::span<const double> got, std::span<const float> expected, size_t vocab_size) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (got.size() != expected.size()) return kInfinite;
  double worst = 0.0;
  for (size_t begin = 0; begin < expected.size(); begin += vocab_size) {
    const double spread = Spread(expected.subspan(begin, vocab_size));
    for (size_t at = begin; at < begin + vocab_size; ++at) {
      const double difference = std::abs(got[at] - static_cast<double>(expected[at])) / spread;
      worst = std::isnan(difference) ? kInfinite : std::max(worst, difference);
    }
  }
  return worst;
}

}  // namespace vllm::testing_support
