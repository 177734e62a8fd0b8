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

  // Returns the moments of the inputs x of the unquantized model and z of the quantized one, both [tokens, columns].
  LayerMoments Moments(const std::vector<float>& x, const std::vector<float>& z, int64_t columns,
                       const ForEach& for_each = kForward) const {
    std::vector<float> rows = x;
    rows.insert(rows.end(), z.begin(), z.end());
    const int64_t num_tokens = static_cast<int64_t>(x.size()) / columns;
    std::vector<TokenRows> tokens;
    for (int64_t i = 0; i < num_tokens; ++i) tokens.push_back({i, num_tokens + i});
    return MeasureMoments(kernels_, rows.data(), columns, columns, tokens, for_each);
  }
  LayerMoments Moments(const std::vector<float>& x, int64_t columns, const ForEach& for_each = kForward) const {
    return Moments(x, x, columns, for_each);
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

  // Returns what quantized layers could make of x, [rows, columns]: each column has an error that depends on another.
  std::vector<float> Perturbed(const std::vector<float>& x, int64_t columns) {
    std::vector<float> z = x;
    const std::vector<float> noise = Floats(std::ssize(x), 0.1f);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t other = i % static_cast<size_t>(columns) == 0 ? i : i - 1;
      z[i] = 0.9f * x[i] + 0.15f * x[other] + noise[i];
    }
    return z;
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
  // More tokens than are added up at a time.
  const int64_t tokens = 300, columns = kBlock + 45;
  const std::vector<float> x = Inputs(tokens, columns), z = Perturbed(x, columns);
  const LayerMoments moments = Moments(x, z, columns, kBackward);
  ASSERT_EQ(moments.blocks.size(), 2u);
  for (const auto& [i, j] : {std::pair<int64_t, int64_t>{0, 0},
                             {3, 200},
                             {17, 31},
                             {200, 3},
                             {1000, kBlock - 1},
                             {kBlock, kBlock + 44},
                             {kBlock + 44, kBlock + 44}}) {
    double products = 0.0, differences = 0.0;
    for (int64_t t = 0; t < tokens; ++t) {
      const auto a = static_cast<size_t>(t * columns + i), b = static_cast<size_t>(t * columns + j);
      products += static_cast<double>(z[a]) * static_cast<double>(z[b]);
      differences += static_cast<double>(x[a] - z[a]) * static_cast<double>(z[b]);
    }
    const LayerMoments::Block& block = moments.blocks[static_cast<size_t>(i / kBlock)];
    const auto index = static_cast<size_t>((i - block.first) * block.num_columns + j - block.first);
    if (i <= j) {
      EXPECT_NEAR(block.products[index], products, 1e-3) << i << " " << j;
    }
    EXPECT_NEAR(block.differences[index], differences, 1e-3) << i << " " << j;
  }
}

TEST_F(ErrorCompensationTest, ResultsDoNotDependOnTheOrderOfTasks) {
  const std::vector<float> x = Inputs(100, 300), w = Floats(kRows * 300);
  const Result forward = Quantize(ErrorCompensation(kernels_, Moments(x, 300, kForward), kForward), w);
  const Result backward = Quantize(ErrorCompensation(kernels_, Moments(x, 300, kBackward), kBackward), w);
  EXPECT_EQ(forward.codes, backward.codes);
  EXPECT_EQ(forward.scales, backward.scales);
}

TEST_F(ErrorCompensationTest, ARowDoesNotDependOnTheOthers) {
  const ErrorCompensation compensation(kernels_, Moments(Inputs(100, 64), 64), kForward);
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

// Solves a m = b for the symmetric matrix a by elimination. a: [n][n]; b: [n].
std::vector<double> Solution(std::vector<std::vector<double>> a, const std::vector<double>& b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) a[i].push_back(b[i]);
  for (size_t c = 0; c < n; ++c) {
    for (size_t i = 0; i < n; ++i) {
      if (i == c) continue;
      const double factor = a[i][c] / a[c][c];
      for (size_t j = c; j <= n; ++j) a[i][j] -= factor * a[c][j];
    }
  }
  std::vector<double> m;
  for (size_t i = 0; i < n; ++i) m.push_back(a[i][n] / a[i][i]);
  return m;
}

// Quantizes rows by the definition, in double precision. For each column, it solves the equations of all columns that
// are not rounded yet.
class SlowCompensation {
 public:
  // x: inputs of the unquantized model; z: of the quantized one.
  SlowCompensation(const std::vector<float>& x, const std::vector<float>& z, size_t columns)
      : n_(columns), h_(n_ * n_), cross_(n_ * n_) {
    for (size_t i = 0; i < n_; ++i) {
      for (size_t j = 0; j < n_; ++j) {
        for (size_t t = 0; t < x.size() / n_; ++t) {
          H(i, j) += static_cast<double>(z[t * n_ + i]) * static_cast<double>(z[t * n_ + j]);
          cross_[i * n_ + j] += static_cast<double>(x[t * n_ + i]) * static_cast<double>(z[t * n_ + j]);
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
    for (size_t k = 0; k < n_; ++k) {
      H(k, k) += 0.01 * mean;
      cross_[k * n_ + k] += 0.01 * mean;
    }
    for (size_t p = 0; p < n_; ++p) {
      changes_.push_back(Solve(p));
      double left = H(order_[p], order_[p]);
      for (size_t m = p + 1; m < n_; ++m) left -= changes_[p][m] * H(order_[p], order_[m]);
      importance_.push_back(static_cast<float>(left / mean));
    }
  }

  // Returns the stored values of the row w.
  std::vector<double> Quantize(const std::vector<float>& original) const {
    const std::vector<double> w = Target(original);
    std::vector<double> rest = w, q(n_);
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
  // Returns the row v for which the sum over the tokens of (w x - v z)^2 is smallest, apart from the damping.
  std::vector<double> Target(const std::vector<float>& w) const {
    std::vector<std::vector<double>> a;
    std::vector<double> b(n_);
    for (size_t i = 0; i < n_; ++i) {
      a.emplace_back(h_.begin() + static_cast<std::ptrdiff_t>(i * n_),
                     h_.begin() + static_cast<std::ptrdiff_t>((i + 1) * n_));
      for (size_t k = 0; k < n_; ++k) b[i] += static_cast<double>(w[k]) * cross_[k * n_ + i];
    }
    return Solution(a, b);
  }
  double Gradient(const std::vector<double>& w, const std::vector<double>& q, size_t i) const {
    double sum = 0.0;
    for (size_t k = 0; k < n_; ++k) sum += H(i, k) * (w[k] - q[k]);
    return sum;
  }
  // Returns for each position m > p how much its column changes per error in the column of position p.
  std::vector<double> Solve(size_t p) const {
    const size_t first = p + 1;
    std::vector<std::vector<double>> a;
    std::vector<double> b;
    for (size_t i = first; i < n_; ++i) {
      std::vector<double>& row = a.emplace_back();
      for (size_t j = first; j < n_; ++j) row.push_back(H(order_[i], order_[j]));
      b.push_back(H(order_[i], order_[p]));
    }
    const std::vector<double> changes = Solution(a, b);
    std::vector<double> result(n_);
    std::copy(changes.begin(), changes.end(), result.begin() + static_cast<std::ptrdiff_t>(first));
    return result;
  }

  size_t n_;
  std::vector<double> h_, cross_;            // z z^T and x z^T, both with the damping
  std::vector<std::vector<size_t>> groups_;  // columns in the order of rounding
  std::vector<size_t> order_;
  std::vector<std::vector<double>> changes_;
  std::vector<float> importance_;
};

TEST_F(ErrorCompensationTest, AgreesWithTheDefinitionInDoublePrecision) {
  // The last group is incomplete.
  const size_t columns = 80;
  const std::vector<float> x = Inputs(300, 80), z = Perturbed(x, 80), w = Floats(kRows * 80);
  const SlowCompensation slow(x, z, columns);
  const Result result = Quantize(ErrorCompensation(kernels_, Moments(x, z, 80), kForward), w);
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
  const Result result = Quantize(ErrorCompensation(kernels_, Moments(x, 320), kForward), w);
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

// The layer's inputs z differ from those of the unquantized model.
TEST_F(ErrorCompensationTest, MakesUpForTheErrorOfItsInputs) {
  const size_t columns = 320;
  const std::vector<float> x = Inputs(600, 320), z = Perturbed(x, 320), w = Floats(kRows * 320);
  // Returns the error of the outputs for z, compared with those of the unquantized layer for x.
  const auto error = [&](const Result& result) {
    double sum = 0.0;
    for (size_t token = 0; token < x.size() / columns; ++token) {
      for (size_t r = 0; r < kRows; ++r) {
        double difference = 0.0;
        for (size_t k = 0; k < columns; ++k) {
          const float stored = result.scales[r * 10 + k / kGroupColumns] * LevelOf(result.codes[r * columns + k]);
          difference += static_cast<double>(x[token * columns + k]) * static_cast<double>(w[r * columns + k]) -
                        static_cast<double>(z[token * columns + k]) * static_cast<double>(stored);
        }
        sum += difference * difference;
      }
    }
    return sum;
  };
  const Result with = Quantize(ErrorCompensation(kernels_, Moments(x, z, 320), kForward), w);
  const Result without = Quantize(ErrorCompensation(kernels_, Moments(z, 320), kForward), w);
  EXPECT_LT(error(with), 0.5 * error(without));
}

TEST_F(ErrorCompensationTest, BlocksAreQuantizedOnTheirOwn) {
  const int64_t columns = LayerMoments::kBlockColumns + 70, rest = 70;
  const std::vector<float> x = Inputs(200, columns), z = Perturbed(x, columns), w = Floats(kRows * columns);
  const auto last = [&](const std::vector<float>& rows) {
    std::vector<float> part;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (static_cast<int64_t>(i) % columns >= columns - rest) part.push_back(rows[i]);
    }
    return part;
  };
  const Result whole = Quantize(ErrorCompensation(kernels_, Moments(x, z, columns), kForward), w);
  const Result alone = Quantize(ErrorCompensation(kernels_, Moments(last(x), last(z), rest), kForward), last(w));
  for (size_t r = 0; r < kRows; ++r) {
    const uint8_t* const codes = &whole.codes[(r + 1) * static_cast<size_t>(columns) - 70];
    EXPECT_TRUE(std::equal(codes, codes + 70, &alone.codes[r * 70])) << r;
  }
}

TEST_F(ErrorCompensationTest, ZeroInputsAndInputsThatAreNotFiniteGiveNearestCodes) {
  const std::vector<float> w = Floats(kRows * 32);
  for (const float input : {0.0f, INFINITY, std::nanf("")}) {
    const std::vector<float> x(32, input);
    const Result result = Quantize(ErrorCompensation(kernels_, Moments(x, 32), kForward), w);
    for (size_t i = 0; i < w.size(); ++i) {
      EXPECT_EQ(result.codes[i], NearestCode(w[i] * (1.0f / result.scales[i / 32]))) << input;
    }
  }
}

TEST_F(ErrorCompensationTest, RowsOfZerosHaveScalesOfZero) {
  const ErrorCompensation compensation(kernels_, Moments(Inputs(100, 64), 64), kForward);
  EXPECT_EQ(Quantize(compensation, std::vector<float>(kRows * 64)).scales, std::vector<float>(kRows * 2));
}

}  // namespace
}  // namespace vllm
