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

struct Difference {
  double worst = 0.0, root_mean_square = 0.0;
};

// Infinite where sizes differ or a number is none. got, expected: [num_positions, vocab_size].
inline Difference DifferenceInSpreads(std::span<const double> got, std::span<const float> expected, size_t vocab_size) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (got.size() != expected.size()) return {kInfinite, kInfinite};
  Difference result;
  double squares = 0.0;
  for (size_t begin = 0; begin < expected.size(); begin += vocab_size) {
    const double spread = Spread(expected.subspan(begin, vocab_size));
    for (size_t at = begin; at < begin + vocab_size; ++at) {
      double difference = std::abs(got[at] - static_cast<double>(expected[at])) / spread;
      if (std::isnan(difference)) difference = kInfinite;
      result.worst = std::max(result.worst, difference);
      squares += difference * difference;
    }
  }
  result.root_mean_square = std::sqrt(squares / static_cast<double>(expected.size()));
  return result;
}

}  // namespace vllm::testing_support
