// Compares calibrated quantization with plain loops that follow its definition.
#include "engine/model_loader/calibration/error_compensation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "engine/model_loader/calibration/scale_search.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"
#include "kernels/matrix/dtype.h"

namespace vllm {
namespace {

constexpr std::array<float, 16> kLevels = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

const ForEach kForward = [](int64_t count, const std::function<void(int64_t i)>& f) {
  for (int64_t i = 0; i < count; ++i) f(i);
};
const ForEach kBackward = [](int64_t count, const std::function<void(int64_t i)>& f) {
  for (int64_t i = count - 1; i >= 0; --i) f(i);
};

class ErrorCompensationTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = ErrorCompensation::kRows;
  struct Result {
    std::vector<uint8_t> codes;  // [kRows, columns]
    std::vector<float> scales;   // [kRows, num_scales()]
  };

  // Returns the moments of x, [tokens, columns].
  LayerMoments Moments(const std::vector<float>& x, int64_t columns, const ForEach& for_each = kForward) const {
    ActivationMoments all;
    all.Add(kernels_, "a", x.data(), columns, static_cast<int64_t>(x.size()) / columns, columns, for_each);
    return *all.Find("a");
  }
  // `rows`: [kRows, columns].
  static Result Quantize(const ErrorCompensation& compensation, const std::vector<float>& rows) {
    const size_t columns = rows.size() / kRows;
    std::vector<float> values(rows.size());
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t k = 0; k < columns; ++k) values[k * kRows + r] = rows[r * columns + k];
    }
    Result result{std::vector<uint8_t>(rows.size()),
                  std::vector<float>(static_cast<size_t>(compensation.num_scales() * kRows))};
    compensation.QuantizeRows(values.data(), result.codes.data(), result.scales.data());
    return result;
  }

  std::vector<float> Floats(int64_t count, float size = 1.0f) {
    std::normal_distribution<float> normal(0.0f, size);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random_);
    return values;
  }
  // Returns rows whose columns are correlated.
  std::vector<float> Inputs(int64_t rows, int64_t columns) {
    std::vector<float> x = Floats(rows * columns);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 1; k < columns; ++k) {
        x[static_cast<size_t>(r * columns + k)] += 0.8f * x[static_cast<size_t>(r * columns + k - 1)];
      }
    }
    return x;
  }

  const kernels::Kernels& kernels_ = kernels::KernelsFor(kernels::BestIsa());
  std::mt19937 random_{7};
};

double Error(const float* x, const float* importance, float scale) {
  double error = 0.0;
  for (int64_t k = 0; k < kGroupColumns; ++k) {
    double least = INFINITY;
    for (const float level : kLevels) {
      const double difference = static_cast<double>(x[k]) - static_cast<double>(scale * level);
      least = std::min(least, difference * difference);
    }
    error += least * static_cast<double>(importance[k]);
  }
  return error;
}

TEST_F(ErrorCompensationTest, TheCodeIsThatOfTheNearestLevel) {
  for (int i = -2000; i <= 2000; ++i) {
    const float value = static_cast<float>(i) / 8.0f;
    float least = INFINITY;
    for (const float level : kLevels) least = std::min(least, std::abs(value - level));
    EXPECT_EQ(std::abs(value - LevelOf(NearestCode(value))), least) << value;
  }
  EXPECT_EQ(NearestCode(-115.5f), 1);
  EXPECT_EQ(NearestCode(INFINITY), 15);
  EXPECT_EQ(NearestCode(-INFINITY), 0);
}

TEST_F(ErrorCompensationTest, TheErrorOfTheScaleIsNotAboveThatOfTheSearchWithoutCalibration) {
  const std::vector<float> equal(kGroupColumns, 1.0f);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<float> x = Floats(kGroupColumns, std::ldexp(1.0f, round % 8 - 6));
    std::array<uint8_t, 18> block{};
    kernels::KernelsFor(kernels::Isa::kGeneric).quant->quantize_iq4_nl(x.data(), kGroupColumns, block.data());
    uint16_t half;
    std::memcpy(&half, block.data(), sizeof(half));
    const double before = Error(x.data(), equal.data(), kernels::Float16ToFloat(half));
    // The candidates contain those of the other search. Rounding the best one to float16 can make it slightly worse.
    EXPECT_LE(Error(x.data(), equal.data(), SearchScale(x.data(), equal.data(), kGroupColumns)), before * 1.001);
  }
}

TEST_F(ErrorCompensationTest, ColumnsWithoutImportanceDoNotChangeTheScale) {
  std::vector<float> x = Floats(kGroupColumns);
  std::vector<float> importance(kGroupColumns, 1.0f);
  for (size_t k = 16; k < x.size(); ++k) importance[k] = 0.0f;
  x[0] = 9.0f;
  const float scale = SearchScale(x.data(), importance.data(), kGroupColumns);
  for (size_t k = 16; k < x.size(); ++k) x[k] = -x[k];
  EXPECT_EQ(SearchScale(x.data(), importance.data(), kGroupColumns), scale);
}

TEST_F(ErrorCompensationTest, GroupsOfZerosAndOfValuesThatAreNotFiniteHaveAScaleOfZero) {
  const std::vector<float> importance(kGroupColumns, 1.0f);
  for (const float value : {0.0f, INFINITY}) {
    const std::vector<float> x(kGroupColumns, value);
    EXPECT_EQ(SearchScale(x.data(), importance.data(), kGroupColumns), 0.0f);
  }
}

TEST_F(ErrorCompensationTest, MomentsAreSumsOfProductsWithinABlock) {
  constexpr int64_t kBlock = LayerMoments::kBlockColumns;
  const int64_t tokens = 30, columns = kBlock + 45;
  const std::vector<float> x = Inputs(tokens, columns);
  ActivationMoments all;
  EXPECT_EQ(all.Find("a"), nullptr);
  all.Add(kernels_, "a", x.data(), columns, 13, columns, kForward);
  all.Add(kernels_, "a", x.data() + 13 * columns, columns, tokens - 13, columns, kBackward);
  const LayerMoments& moments = *all.Find("a");
  for (const auto& [i, j] : {std::pair<int64_t, int64_t>{0, 0},
                             {3, 200},
                             {31, 32},
                             {40, kBlock - 1},
                             {kBlock, kBlock + 44},
                             {kBlock + 44, kBlock + 44}}) {
    double sum = 0.0;
    for (int64_t t = 0; t < tokens; ++t) {
      sum += static_cast<double>(x[static_cast<size_t>(t * columns + i)]) *
             static_cast<double>(x[static_cast<size_t>(t * columns + j)]);
    }
    EXPECT_NEAR(moments.At(i, j), sum, 1e-4) << i << " " << j;
  }
  EXPECT_EQ(moments.At(kBlock - 1, kBlock), 0.0f);
}

TEST_F(ErrorCompensationTest, ResultsDoNotDependOnTheOrderOfTasks) {
  const std::vector<float> x = Inputs(100, 300), w = Floats(kRows * 300);
  const Result forward = Quantize(ErrorCompensation(kernels_, Moments(x, 300, kForward), 0, 300, kForward), w);
  const Result backward = Quantize(ErrorCompensation(kernels_, Moments(x, 300, kBackward), 0, 300, kBackward), w);
  EXPECT_EQ(forward.codes, backward.codes);
  EXPECT_EQ(forward.scales, backward.scales);
}

TEST_F(ErrorCompensationTest, ARowDoesNotDependOnTheOthers) {
  const ErrorCompensation compensation(kernels_, Moments(Inputs(100, 64), 64), 0, 64, kForward);
  std::vector<float> w = Floats(kRows * 64);
  const Result before = Quantize(compensation, w);
  std::rotate(w.begin(), w.begin() + 64, w.end());
  const Result after = Quantize(compensation, w);
  for (size_t r = 0; r < kRows; ++r) {
    const size_t other = (r + kRows - 1) % kRows;
    EXPECT_TRUE(std::equal(&before.codes[r * 64], &before.codes[r * 64] + 64, &after.codes[other * 64])) << r;
    EXPECT_TRUE(std::equal(&before.scales[r * 2], &before.scales[r * 2] + 2, &after.scales[other * 2])) << r;
  }
}

// Quantizes rows by the definition, in double precision. For each column, it solves the equations of all columns that
// are not rounded yet.
class SlowCompensation {
 public:
  SlowCompensation(const std::vector<float>& x, size_t columns) : n_(columns), h_(n_ * n_) {
    for (size_t i = 0; i < n_; ++i) {
      for (size_t j = 0; j < n_; ++j) {
        for (size_t t = 0; t < x.size() / n_; ++t) {
          H(i, j) += static_cast<double>(x[t * n_ + i]) * static_cast<double>(x[t * n_ + j]);
        }
      }
    }
    std::vector<std::pair<double, size_t>> groups;
    for (size_t first = 0; first < n_; first += kGroupColumns) {
      double sum = 0.0;
      for (size_t k = first; k < std::min(n_, first + kGroupColumns); ++k) sum += H(k, k);
      groups.emplace_back(-sum, first);
    }
    std::sort(groups.begin(), groups.end());
    double mean = 0.0;
    for (const auto& [sum, first] : groups) {
      mean -= sum / static_cast<double>(n_);
      std::vector<std::pair<double, size_t>> members;
      for (size_t k = first; k < std::min(n_, first + kGroupColumns); ++k) members.emplace_back(-H(k, k), k);
      std::sort(members.begin(), members.end());
      std::vector<size_t>& group = groups_.emplace_back();
      for (const auto& [size, k] : members) group.push_back(k);
      order_.insert(order_.end(), group.begin(), group.end());
    }
    for (size_t k = 0; k < n_; ++k) H(k, k) += 0.01 * mean;
    for (size_t p = 0; p < n_; ++p) {
      changes_.push_back(Solve(p));
      double left = H(order_[p], order_[p]);
      for (size_t m = p + 1; m < n_; ++m) left -= changes_[p][m] * H(order_[p], order_[m]);
      importance_.push_back(static_cast<float>(left / mean));
    }
  }

  // Returns the stored values of the row w.
  std::vector<double> Quantize(const std::vector<float>& w) const {
    std::vector<double> rest(w.begin(), w.end()), q(n_);
    std::vector<float> scales;
    size_t p = 0;
    for (const std::vector<size_t>& group : groups_) {
      std::vector<float> x;
      for (const size_t k : group) x.push_back(static_cast<float>(rest[k]));
      scales.push_back(SearchScale(x.data(), importance_.data() + p, static_cast<int64_t>(x.size())));
      for (const size_t k : group) {
        q[k] = Nearest(rest[k], scales.back());
        for (size_t m = p + 1; m < n_; ++m) rest[order_[m]] += changes_[p][m] * (rest[k] - q[k]);
        ++p;
      }
    }
    for (int pass = 0; pass < 3; ++pass) {
      for (size_t g = 0; g < groups_.size(); ++g) {
        double slope = 0.0, curvature = 0.0;
        for (const size_t i : groups_[g]) {
          slope += q[i] / scales[g] * Gradient(w, q, i);
          for (const size_t j : groups_[g]) curvature += q[i] / scales[g] * H(i, j) * q[j] / scales[g];
        }
        const float scale = kernels::Float16ToFloat(
            kernels::FloatToFloat16(static_cast<float>(static_cast<double>(scales[g]) + slope / curvature)));
        for (const size_t i : groups_[g]) q[i] *= static_cast<double>(scale) / static_cast<double>(scales[g]);
        scales[g] = scale;
        for (const size_t i : groups_[g]) q[i] = Nearest(q[i] + Gradient(w, q, i) / H(i, i), scale);
      }
    }
    return q;
  }

 private:
  double& H(size_t i, size_t j) { return h_[i * n_ + j]; }
  double H(size_t i, size_t j) const { return h_[i * n_ + j]; }
  static double Nearest(double value, float scale) {
    const double s = static_cast<double>(scale);
    return s * static_cast<double>(LevelOf(NearestCode(static_cast<float>(value / s))));
  }
  double Gradient(const std::vector<float>& w, const std::vector<double>& q, size_t i) const {
    double sum = 0.0;
    for (size_t k = 0; k < n_; ++k) sum += H(i, k) * (static_cast<double>(w[k]) - q[k]);
    return sum;
  }
  // Returns for each position m > p how much its column changes per error in the column of position p.
  std::vector<double> Solve(size_t p) const {
    const size_t first = p + 1;
    std::vector<std::vector<double>> a;
    for (size_t i = first; i < n_; ++i) {
      std::vector<double>& row = a.emplace_back();
      for (size_t j = first; j < n_; ++j) row.push_back(H(order_[i], order_[j]));
      row.push_back(H(order_[i], order_[p]));
    }
    const size_t size = a.size();
    for (size_t c = 0; c < size; ++c) {
      for (size_t i = 0; i < size; ++i) {
        if (i == c) continue;
        const double factor = a[i][c] / a[c][c];
        for (size_t j = c; j <= size; ++j) a[i][j] -= factor * a[c][j];
      }
    }
    std::vector<double> result(n_);
    for (size_t i = 0; i < size; ++i) result[first + i] = a[i][size] / a[i][i];
    return result;
  }

  size_t n_;
  std::vector<double> h_;
  std::vector<std::vector<size_t>> groups_;  // columns in the order of rounding
  std::vector<size_t> order_;
  std::vector<std::vector<double>> changes_;
  std::vector<float> importance_;
};

TEST_F(ErrorCompensationTest, AgreesWithTheDefinitionInDoublePrecision) {
  // The last group is incomplete.
  const size_t columns = 80;
  const std::vector<float> x = Inputs(300, static_cast<int64_t>(columns)), w = Floats(kRows * 80);
  const SlowCompensation slow(x, columns);
  const Result result = Quantize(ErrorCompensation(kernels_, Moments(x, 80), 0, 80, kForward), w);
  int differences = 0;
  for (size_t r = 0; r < kRows; ++r) {
    const std::vector<double> expected = slow.Quantize({&w[r * columns], &w[r * columns] + columns});
    for (size_t k = 0; k < columns; ++k) {
      const float stored = result.scales[r * 3 + k / kGroupColumns] * LevelOf(result.codes[r * columns + k]);
      if (std::abs(static_cast<double>(stored) - expected[k]) > 1e-3) ++differences;
    }
  }
  // A value next to the middle of two levels may be rounded differently, which changes the rest of its row.
  EXPECT_LE(differences, 80);
}

// Returns the error of the layer's outputs for the row `w` if it is replaced by codes and scales.
double OutputError(const std::vector<float>& x, const float* w, size_t columns, const uint8_t* codes,
                   const float* scales) {
  double error = 0.0;
  for (size_t token = 0; token < x.size() / columns; ++token) {
    double difference = 0.0;
    for (size_t k = 0; k < columns; ++k) {
      const float stored = scales[k / kGroupColumns] * LevelOf(codes[k]);
      difference += static_cast<double>(x[token * columns + k]) * static_cast<double>(w[k] - stored);
    }
    error += difference * difference;
  }
  return error;
}

TEST_F(ErrorCompensationTest, RemovesMostOfTheErrorOfOutputsOnCorrelatedInputs) {
  const size_t columns = 320;
  const std::vector<float> x = Inputs(600, 320), w = Floats(kRows * 320);
  const Result result = Quantize(ErrorCompensation(kernels_, Moments(x, 320), 0, 320, kForward), w);
  double with = 0.0, without = 0.0;
  for (size_t r = 0; r < kRows; ++r) {
    const float* row = w.data() + r * columns;
    with += OutputError(x, row, columns, &result.codes[r * columns], &result.scales[r * 10]);
    const std::vector<float> equal(kGroupColumns, 1.0f);
    std::vector<uint8_t> codes(columns);
    std::vector<float> scales(10);
    for (size_t k = 0; k < columns; ++k) {
      if (k % kGroupColumns == 0) scales[k / kGroupColumns] = SearchScale(row + k, equal.data(), kGroupColumns);
      codes[k] = NearestCode(row[k] / scales[k / kGroupColumns]);
    }
    without += OutputError(x, row, columns, codes.data(), scales.data());
  }
  EXPECT_LT(with, 0.4 * without);
}

// A rank may have some columns of the layer.
TEST_F(ErrorCompensationTest, AShardUsesTheMomentsOfItsColumns) {
  const int64_t columns = 400;
  const std::vector<float> x = Inputs(500, columns), w = Floats(kRows * 145);
  std::vector<float> part;
  for (size_t t = 0; t < 500; ++t) part.insert(part.end(), &x[t * 400 + 255], &x[t * 400] + 400);
  const Result shard = Quantize(ErrorCompensation(kernels_, Moments(x, columns), 255, 145, kForward), w);
  const Result alone = Quantize(ErrorCompensation(kernels_, Moments(part, 145), 0, 145, kForward), w);
  EXPECT_EQ(shard.codes, alone.codes);
  EXPECT_EQ(shard.scales, alone.scales);
}

TEST_F(ErrorCompensationTest, GroupsAcrossTheBoundaryOfBlocksAreQuantized) {
  const int64_t begin = LayerMoments::kBlockColumns - 50;
  const std::vector<float> x = Inputs(100, LayerMoments::kBlockColumns + 50), w = Floats(kRows * 100);
  const LayerMoments moments = Moments(x, LayerMoments::kBlockColumns + 50);
  const Result result = Quantize(ErrorCompensation(kernels_, moments, begin, 100, kForward), w);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t k = 0; k < 100; ++k) {
      const float stored = result.scales[r * 4 + k / kGroupColumns] * LevelOf(result.codes[r * 100 + k]);
      EXPECT_NEAR(stored, w[r * 100 + k], 1.0f) << r << " " << k;
    }
  }
}

TEST_F(ErrorCompensationTest, ZeroInputsAndInputsThatAreNotFiniteGiveNearestCodes) {
  const std::vector<float> w = Floats(kRows * 32);
  for (const float input : {0.0f, INFINITY, std::nanf("")}) {
    const std::vector<float> x(32, input);
    const Result result = Quantize(ErrorCompensation(kernels_, Moments(x, 32), 0, 32, kForward), w);
    for (size_t i = 0; i < w.size(); ++i) {
      EXPECT_EQ(result.codes[i], NearestCode(w[i] * (1.0f / result.scales[i / 32]))) << input;
    }
  }
}

TEST_F(ErrorCompensationTest, RowsOfZerosHaveScalesOfZero) {
  const ErrorCompensation compensation(kernels_, Moments(Inputs(100, 64), 64), 0, 64, kForward);
  EXPECT_EQ(Quantize(compensation, std::vector<float>(kRows * 64)).scales, std::vector<float>(kRows * 2));
}

}  // namespace
}  // namespace vllm
