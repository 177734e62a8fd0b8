#include "engine/model_loader/calibration/error_compensation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "engine/model_loader/calibration/scale_search.h"
#include "kernels/matrix/dtype.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

namespace {

// The share of the mean of the moments' diagonal that is added to the diagonal, as in GPTQ. It keeps the factors finite
// if the text has fewer tokens than the block has columns, and limits how closely the codes fit the text.
constexpr double kDamping = 0.01;
// How often each scale and code is fitted again.
constexpr int kPasses = 3;

static_assert(ErrorCompensation::kRows == kernels::kPanelRows);

using Lanes = std::array<float, ErrorCompensation::kRows>;

// Returns the sum of the products of a[i] and b[i], in a fixed order that compilers can vectorize.
double Dot(const double* a, const double* b, int64_t count) {
  constexpr int64_t kSums = 8;
  std::array<double, kSums> sums{};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int64_t s = 0; s < kSums; ++s) sums[static_cast<size_t>(s)] += a[i + s] * b[i + s];
  }
  double sum = 0.0;
  for (const double part : sums) sum += part;
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// Overwrites the upper triangle of h, [n, n], with R, where h = R R^T. No eigenvalue of h is below `smallest`, so
// neither is a pivot, except through rounding.
void FactorFromBelow(int64_t n, double smallest, double* h) {
  for (int64_t j = n - 1; j >= 0; --j) {
    for (int64_t i = j; i >= 0; --i) {
      const double sum = h[i * n + j] - Dot(h + i * n + j + 1, h + j * n + j + 1, n - j - 1);
      h[i * n + j] = i == j ? std::sqrt(std::max(sum, smallest)) : sum / h[j * n + j];
    }
  }
}

// Writes row i of the inverse of the upper triangular r, [n, n], to `row`, [n].
void InverseRow(int64_t n, const double* r, int64_t i, double* row) {
  std::fill_n(row, n, 0.0);
  row[i] = 1.0;
  for (int64_t m = i; m < n; ++m) {
    row[m] /= r[m * n + m];
    for (int64_t c = m + 1; c < n; ++c) row[c] -= row[m] * r[m * n + c];
  }
}

// Writes to sums[i] the sum over k < count of factors[i * stride + k] rows[k], for i < num_sums.
void Combine(const kernels::Kernels& kernels, const Lanes* rows, int64_t count, const float* factors, int64_t stride,
             int64_t num_sums, Lanes* sums) {
  const kernels::PackedMatrixView matrix{rows, kernels::DType::kFloat32, ErrorCompensation::kRows, count};
  kernels.linear(factors, stride, num_sums, matrix, nullptr, sums->data(), ErrorCompensation::kRows, 0, 1);
}

void AddMultiple(float factor, const Lanes& from, Lanes& to) {
  for (size_t r = 0; r < to.size(); ++r) to[r] += factor * from[r];
}

}  // namespace

// The rows of a panel in the positions of a block.
struct ErrorCompensation::Panel {
  std::vector<Lanes> weights;                     // [positions]
  std::vector<std::array<uint8_t, kRows>> codes;  // [positions]
  std::vector<Lanes> scales;                      // [groups]
  // [positions] Round: the error of a rounded position, divided by its V[j][j]. Refine: the weight minus what is
  // stored.
  std::vector<Lanes> errors;
};

ErrorCompensation::ErrorCompensation(const kernels::Kernels& kernels, const LayerMoments& moments,
                                     const ForEach& for_each)
    : kernels_(kernels), num_columns_(0) {
  for (const LayerMoments::Block& part : moments.blocks) {
    Block& block = blocks_.emplace_back();
    for (int64_t first = 0; first < part.num_columns; first += kGroupColumns) {
      block.groups.push_back(
          {0, std::min(kGroupColumns, part.num_columns - first), (part.first + first) / kGroupColumns});
    }
    num_columns_ += part.num_columns;
    Factor(part, block, for_each);
    Correct(part, block, for_each);
  }
}

void ErrorCompensation::Factor(const LayerMoments::Block& moments, Block& block, const ForEach& for_each) const {
  const int64_t n = moments.num_columns;
  // Columns with large inputs come first, because the error of the last columns is not made up for.
  const auto diagonal = [&](int64_t column) {
    const float value = moments.products[static_cast<size_t>((column - moments.first) * (n + 1))];
    return std::isfinite(value) ? value : 0.0f;
  };
  const auto size = [&](const Group& group) {
    double sum = 0.0;
    for (int64_t i = 0; i < group.count; ++i) {
      sum += static_cast<double>(diagonal(group.scale_index * kGroupColumns + i));
    }
    return sum;
  };
  std::stable_sort(block.groups.begin(), block.groups.end(),
                   [&](const Group& a, const Group& b) { return size(a) > size(b); });
  for (Group& group : block.groups) {
    group.first = static_cast<int64_t>(block.columns.size());
    for (int64_t i = 0; i < group.count; ++i) block.columns.push_back(group.scale_index * kGroupColumns + i);
    std::stable_sort(block.columns.end() - group.count, block.columns.end(),
                     [&](int64_t a, int64_t b) { return diagonal(a) > diagonal(b); });
  }
  std::vector<double> h(static_cast<size_t>(n * n));
  double mean = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n; ++j) {
      const int64_t a = block.columns[static_cast<size_t>(i)] - moments.first;
      const int64_t b = block.columns[static_cast<size_t>(j)] - moments.first;
      h[static_cast<size_t>(i * n + j)] =
          static_cast<double>(moments.products[static_cast<size_t>(std::min(a, b) * n + std::max(a, b))]);
    }
    mean += h[static_cast<size_t>(i * n + i)] / static_cast<double>(n);
  }
  // If the inputs were always zero or not finite, nothing is known about the columns, and they count the same.
  if (!(mean > 0.0) || !std::isfinite(mean)) {
    std::fill(h.begin(), h.end(), 0.0);
    mean = 1.0 / kDamping;
  }
  const double damping = kDamping * mean;
  for (int64_t i = 0; i < n; ++i) h[static_cast<size_t>(i * n + i)] += damping;
  block.moments.resize(h.size());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n; ++j) {
      const auto value = static_cast<float>(h[static_cast<size_t>(i * n + j)] / mean);
      block.moments[static_cast<size_t>(i * n + j)] = block.moments[static_cast<size_t>(j * n + i)] = value;
    }
  }
  FactorFromBelow(n, damping, h.data());
  block.factor.resize(h.size());
  block.importance.resize(static_cast<size_t>(n));
  for_each(n, [&](int64_t i) {
    std::vector<double> row(static_cast<size_t>(n));
    InverseRow(n, h.data(), i, row.data());
    for (int64_t j = i; j < n; ++j) {
      block.factor[static_cast<size_t>(j * n + i)] = static_cast<float>(row[static_cast<size_t>(j)]);
    }
    const double pivot = row[static_cast<size_t>(i)];
    block.importance[static_cast<size_t>(i)] = static_cast<float>(1.0 / (mean * pivot * pivot));
  });
}

void ErrorCompensation::Correct(const LayerMoments::Block& moments, Block& block, const ForEach& for_each) const {
  // The outputs w x are approximated best by v z with v = w X Z^T (Z Z^T)^-1 = w + w (X - Z) Z^T (Z Z^T)^-1.
  const int64_t n = moments.num_columns;
  const std::vector<float>& sums = moments.differences;
  if (std::ranges::all_of(sums, [](float sum) { return sum == 0.0f; })) return;
  if (!std::ranges::all_of(sums, [](float sum) { return std::isfinite(sum); })) return;
  const auto pack = [n](const std::vector<float>& matrix) {
    kernels::PackedMatrix packed(n, n, kernels::DType::kFloat32);
    packed.PackRows(reinterpret_cast<const std::byte*>(matrix.data()), kernels::DType::kFloat32,
                    n * static_cast<int64_t>(sizeof(float)));
    return packed;
  };
  // Writes a b^T.
  const auto multiply = [&](const std::vector<float>& a, const kernels::PackedMatrix& b, std::vector<float>& product) {
    for_each(b.view().num_panels(), [&](int64_t panel) {
      kernels_.linear(a.data(), n, n, b.view(), nullptr, product.data(), n, panel, panel + 1);
    });
  };
  std::vector<float> inverse(sums.size()), differences(sums.size());
  multiply(block.factor, pack(block.factor), inverse);
  for_each(n, [&](int64_t i) {
    const int64_t a = block.columns[static_cast<size_t>(i)] - moments.first;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t b = block.columns[static_cast<size_t>(j)] - moments.first;
      differences[static_cast<size_t>(i * n + j)] = sums[static_cast<size_t>(a * n + b)];
    }
  });
  block.correction.resize(sums.size());
  multiply(inverse, pack(differences), block.correction);
}

int64_t ErrorCompensation::num_scales() const { return (num_columns_ + kGroupColumns - 1) / kGroupColumns; }

void ErrorCompensation::Round(const Block& block, Panel& panel) const {
  const auto n = static_cast<int64_t>(block.columns.size());
  for (size_t g = 0; g < block.groups.size(); ++g) {
    const Group& group = block.groups[g];
    std::array<Lanes, kGroupColumns> x;
    Combine(kernels_, panel.errors.data(), group.first, block.factor.data() + group.first * n, n, group.count,
            x.data());
    for (int64_t i = 0; i < group.count; ++i) {
      const Lanes& weights = panel.weights[static_cast<size_t>(group.first + i)];
      for (size_t r = 0; r < kRows; ++r) x[static_cast<size_t>(i)][r] = weights[r] - x[static_cast<size_t>(i)][r];
    }
    Lanes inverse{};
    for (size_t r = 0; r < kRows; ++r) {
      std::array<float, kGroupColumns> row;
      for (size_t i = 0; i < static_cast<size_t>(group.count); ++i) row[i] = x[i][r];
      const float scale = SearchScale(row.data(), block.importance.data() + group.first, group.count);
      panel.scales[g][r] = scale;
      inverse[r] = scale != 0.0f ? 1.0f / scale : 0.0f;
    }
    for (int64_t i = 0; i < group.count; ++i) {
      const auto p = static_cast<size_t>(group.first + i);
      const float* column = block.factor.data() + group.first + i;  // of V
      Lanes& error = panel.errors[p];
      for (size_t r = 0; r < kRows; ++r) {
        const float value = x[static_cast<size_t>(i)][r];
        const uint8_t code = NearestCode(value * inverse[r]);
        panel.codes[p][r] = code;
        error[r] = (value - panel.scales[g][r] * LevelOf(code)) / column[(group.first + i) * n];
      }
      for (int64_t k = i + 1; k < group.count; ++k) {
        AddMultiple(-column[(group.first + k) * n], error, x[static_cast<size_t>(k)]);
      }
    }
  }
}

void ErrorCompensation::Refine(const Block& block, Panel& panel) const {
  const auto n = static_cast<int64_t>(block.columns.size());
  for (size_t g = 0; g < block.groups.size(); ++g) {
    const Group& group = block.groups[g];
    const auto count = static_cast<size_t>(group.count), first = static_cast<size_t>(group.first);
    const float* const moments = block.moments.data() + group.first * n;
    // The gradient is half the derivative of the error with respect to the stored weights, negated.
    std::array<Lanes, kGroupColumns> gradient, levels, products;
    Combine(kernels_, panel.errors.data(), n, moments, n, group.count, gradient.data());
    for (size_t i = 0; i < count; ++i) {
      for (size_t r = 0; r < kRows; ++r) levels[i][r] = LevelOf(panel.codes[first + i][r]);
    }
    // Along the levels, the error is a parabola of the scale.
    Combine(kernels_, levels.data(), group.count, moments + group.first, n, group.count, products.data());
    Lanes slope{}, curvature{}, inverse{};
    for (size_t i = 0; i < count; ++i) {
      for (size_t r = 0; r < kRows; ++r) {
        slope[r] += levels[i][r] * gradient[i][r];
        curvature[r] += levels[i][r] * products[i][r];
      }
    }
    for (size_t r = 0; r < kRows; ++r) {
      float& scale = panel.scales[g][r];
      const float best = kernels::Float16ToFloat(kernels::FloatToFloat16(scale + slope[r] / curvature[r]));
      // Groups of zeros, and those with values that are not finite, keep their scales.
      if (scale != 0.0f && best != 0.0f && std::isfinite(best)) {
        const float change = best - scale;
        for (size_t i = 0; i < count; ++i) {
          panel.errors[first + i][r] -= change * levels[i][r];
          gradient[i][r] -= change * products[i][r];
        }
        scale = best;
      }
      inverse[r] = scale != 0.0f ? 1.0f / scale : 0.0f;
    }
    for (size_t i = 0; i < count; ++i) {
      const float* const row = moments + static_cast<int64_t>(i) * n + group.first;
      Lanes change;
      for (size_t r = 0; r < kRows; ++r) {
        const uint8_t code = NearestCode(levels[i][r] + gradient[i][r] / row[i] * inverse[r]);
        change[r] = panel.scales[g][r] * (LevelOf(code) - levels[i][r]);
        panel.codes[first + i][r] = code;
        panel.errors[first + i][r] -= change[r];
      }
      for (size_t k = 0; k < count; ++k) AddMultiple(-row[k], change, gradient[k]);
    }
  }
}

void ErrorCompensation::QuantizeRows(const float* values, uint8_t* codes, float* scales) const {
  Panel panel;
  for (const Block& block : blocks_) {
    const size_t n = block.columns.size();
    panel.weights.resize(n);
    panel.codes.resize(n);
    panel.errors.resize(n);
    panel.scales.resize(block.groups.size());
    for (size_t p = 0; p < n; ++p) std::copy_n(values + block.columns[p] * kRows, kRows, panel.weights[p].begin());
    if (!block.correction.empty()) {
      std::vector<Lanes> changes(n);
      const auto size = static_cast<int64_t>(n);
      Combine(kernels_, panel.weights.data(), size, block.correction.data(), size, size, changes.data());
      for (size_t p = 0; p < n; ++p) AddMultiple(1.0f, changes[p], panel.weights[p]);
    }
    Round(block, panel);
    for (size_t g = 0; g < block.groups.size(); ++g) {
      for (int64_t i = 0; i < block.groups[g].count; ++i) {
        const auto p = static_cast<size_t>(block.groups[g].first + i);
        for (size_t r = 0; r < kRows; ++r) {
          panel.errors[p][r] = panel.weights[p][r] - panel.scales[g][r] * LevelOf(panel.codes[p][r]);
        }
      }
    }
    for (int pass = 0; pass < kPasses; ++pass) Refine(block, panel);
    for (size_t p = 0; p < n; ++p) {
      for (int64_t r = 0; r < kRows; ++r)
        codes[r * num_columns_ + block.columns[p]] = panel.codes[p][static_cast<size_t>(r)];
    }
    for (size_t g = 0; g < block.groups.size(); ++g) {
      for (int64_t r = 0; r < kRows; ++r) {
        scales[r * num_scales() + block.groups[g].scale_index] = panel.scales[g][static_cast<size_t>(r)];
      }
    }
  }
}

}  // namespace vllm
