// Measures how far a model's results are from the expected ones: the largest of the differences and their root mean
// square. DifferenceInSpreads measures in units of the spread (standard deviation) of each position's logits. Pure
// functions and plain values; any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace vllm::testing_support {

// Largest allowed difference, in spreads, between float32 arithmetic on quantized codes and on dequantized weights.
// Only the order of summation differs.
inline constexpr double kDequantizedLimit = 1e-4;

// Returns the standard deviation of `row`.
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

// Accumulates differences. NaN counts as infinity. The result is infinite if no difference was added.
class DifferenceSum {
 public:
  void Add(double difference) {
    difference = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::abs(difference);
    worst_ = std::max(worst_, difference);
    squares_ += difference * difference;
    ++count_;
  }
  Difference Result() const {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    if (count_ == 0) return {kInfinite, kInfinite};
    return {worst_, std::sqrt(squares_ / static_cast<double>(count_))};
  }

 private:
  double worst_ = 0.0, squares_ = 0.0;
  size_t count_ = 0;
};

// Returns the difference in units of each position's spread. It is infinite if the sizes differ or a value is NaN.
// got, expected: [num_positions, vocab_size].
inline Difference DifferenceInSpreads(std::span<const double> got, std::span<const float> expected, size_t vocab_size) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (got.size() != expected.size()) return {kInfinite, kInfinite};
  DifferenceSum sum;
  for (size_t begin = 0; begin < expected.size(); begin += vocab_size) {
    const double spread = Spread(expected.subspan(begin, vocab_size));
    for (size_t i = begin; i < begin + vocab_size; ++i) {
      sum.Add((got[i] - static_cast<double>(expected[i])) / spread);
    }
  }
  return sum.Result();
}

}  // namespace vllm::testing_support
