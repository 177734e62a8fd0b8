// Compares the kernels of every available instruction set with plain loops, over random shapes and strides. Also tests
// that a result does not depend on how the work is split.
#include "kernels/kernels.h"
#include "kernels/isa/kernels_for.h"
#include "tests/support/random_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

namespace vllm::kernels {
namespace {

class KernelsTest : public testing::TestWithParam<Isa>, protected testing_support::RandomValues {
 protected:
  KernelsTest() : RandomValues(7) {}

  const Kernels& kernels() const { return KernelsFor(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Isas, KernelsTest, testing::ValuesIn(AvailableIsas()),
                         [](const auto& isa) { return std::string(ToString(isa.param)); });

PackedMatrix Pack(const std::vector<float>& w, int64_t rows, int64_t columns, DType dtype) {
  PackedMatrix packed(rows, columns, dtype);
  packed.PackRows(reinterpret_cast<const std::byte*>(w.data()), DType::kFloat32, columns * 4);
  return packed;
}

TEST_P(KernelsTest, LinearAgreesWithThePlainLoop) {
  for (int round = 0; round < 400; ++round) {
    const int64_t num_rows = Int(0, 20);
    const int64_t out = Int(1, 90);
    const int64_t in = round % 10 == 0 ? Int(1000, 2500) : Int(1, 130);
    const DType dtype = std::array{DType::kFloat32, DType::kBFloat16, DType::kFloat16}[static_cast<size_t>(round % 3)];
    const int64_t x_stride = in + Int(0, 5);
    const int64_t y_stride = out + Int(0, 5);
    const std::vector<float> x = Floats(num_rows * x_stride + 1);
    const PackedMatrix w = Pack(Floats(out * in), out, in, dtype);
    const std::vector<float> bias = Floats(out);
    const bool with_bias = round % 2 == 0;
    std::vector<float> y(static_cast<size_t>(num_rows * y_stride + 1), -77.0f);
    kernels().linear(x.data(), x_stride, num_rows, w.view(), with_bias ? bias.data() : nullptr, y.data(), y_stride, 0,
                     w.view().num_panels());
    std::vector<float> row(static_cast<size_t>(in));
    for (int64_t n = 0; n < out; ++n) {
      w.UnpackRow(n, row.data());
      for (int64_t r = 0; r < num_rows; ++r) {
        double sum = 0.0, magnitude = 1.0;
        for (int64_t k = 0; k < in; ++k) {
          const double product =
              static_cast<double>(x[static_cast<size_t>(r * x_stride + k)]) * row[static_cast<size_t>(k)];
          sum += product;
          magnitude += std::abs(product);
        }
        if (with_bias) sum += bias[static_cast<size_t>(n)];
        // In the worst case, sequential summation in float32 adds one rounding error per column. In practice, most of
        // these errors cancel out, so a bound of 1e-6 times the magnitude is enough.
        ASSERT_NEAR(y[static_cast<size_t>(r * y_stride + n)], sum, magnitude * 1e-6)
            << out << "x" << in << " row " << r;
      }
    }
    // The padding at the end of each row of y was not written.
    for (int64_t r = 0; r < num_rows; ++r) {
      for (int64_t n = out; n < y_stride; ++n) ASSERT_EQ(y[static_cast<size_t>(r * y_stride + n)], -77.0f);
    }
  }
}

TEST_P(KernelsTest, LinearIsBitIdenticalForAnyNumberOfRowsAndSplitOfPanels) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    const int64_t out = 16 * 11 + 5, in = 2100, num_rows = 23;
    const std::vector<float> x = Floats(num_rows * in);
    const PackedMatrix w = Pack(Floats(out * in), out, in, dtype);
    const std::vector<float> bias = Floats(out);
    std::vector<float> all(static_cast<size_t>(num_rows * out));
    kernels().linear(x.data(), in, num_rows, w.view(), bias.data(), all.data(), out, 0, w.view().num_panels());
    for (int round = 0; round < 20; ++round) {
      const int64_t first = Int(0, num_rows - 1);
      const int64_t count = Int(1, num_rows - first);
      std::vector<float> some(static_cast<size_t>(count * out));
      for (int64_t panel = 0; panel < w.view().num_panels();) {
        const int64_t end = std::min(w.view().num_panels(), panel + Int(1, 9));
        kernels().linear(x.data() + first * in, in, count, w.view(), bias.data(), some.data(), out, panel, end);
        panel = end;
      }
      for (int64_t i = 0; i < count * out; ++i)
        ASSERT_EQ(some[static_cast<size_t>(i)], all[static_cast<size_t>(first * out + i)]);
    }
  }
}

TEST_P(KernelsTest, RelativeErrorOfExpIsAtMostThreeTenMillionths) {
  std::vector<float> x;
  for (float v = -87.0f; v < 88.0f; v += 0.0137f) x.push_back(v);
  std::vector<float> y(x.size());
  kernels().exp(x.data(), static_cast<int64_t>(x.size()), y.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    ASSERT_NEAR(y[i] / exact, 1.0, 3e-7) << x[i];
  }
}

TEST_P(KernelsTest, ExpHandlesSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-infinity, -200.0f, 0.0f, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> y(x.size());
  kernels().exp(x.data(), static_cast<int64_t>(x.size()), y.data());
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_EQ(y[2], 1.0f);
  EXPECT_TRUE(std::isnan(y[3]));
}

TEST_P(KernelsTest, RmsNormAgreesWithThePlainLoop) {
  for (int round = 0; round < 200; ++round) {
    const int64_t n = Int(1, 200);
    const std::vector<float> x = Floats(n, 3.0f), w = Floats(n);
    std::vector<float> y(static_cast<size_t>(n));
    kernels().rms_norm(x.data(), w.data(), 1e-5f, n, y.data());
    double sum = 0.0;
    for (const float v : x) sum += static_cast<double>(v) * v;
    const double scale = 1.0 / std::sqrt(sum / static_cast<double>(n) + 1e-5);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(y[i], w[i] * x[i] * scale, 2e-6 * (1.0 + std::abs(w[i] * x[i] * scale)));
  }
}

TEST_P(KernelsTest, LayerNormAgreesWithThePlainLoop) {
  for (int round = 0; round < 200; ++round) {
    const int64_t n = Int(1, 200);
    std::vector<float> x = Floats(n, 3.0f);
    // With a mean far from zero, mean(x^2) - mean(x)^2 would suffer from cancellation.
    for (float& v : x) v += 100.0f;
    const std::vector<float> w = Floats(n), b = Floats(n);
    const bool plain = round % 3 == 0;
    std::vector<float> y(static_cast<size_t>(n));
    kernels().layer_norm(x.data(), plain ? nullptr : w.data(), plain ? nullptr : b.data(), 1e-5f, n, y.data());
    double mean = 0.0, variance = 0.0;
    for (const float v : x) mean += v / static_cast<double>(n);
    for (const float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(n);
    for (size_t i = 0; i < x.size(); ++i) {
      const double normed = (x[i] - mean) / std::sqrt(variance + 1e-5);
      const double exact = plain ? normed : normed * w[i] + b[i];
      // The rounding error of the mean is divided by the standard deviation.
      ASSERT_NEAR(y[i], exact, 2e-4 + 3e-5 / std::sqrt(variance + 1e-5)) << n;
    }
  }
}

TEST_P(KernelsTest, TheTwoHalvesOfRmsNormAreBitIdenticalToTheWhole) {
  for (int64_t n = 1; n < 100; ++n) {
    const std::vector<float> x = Floats(n, 3.0f), w = Floats(n);
    std::vector<float> whole(static_cast<size_t>(n)), halves(static_cast<size_t>(n));
    kernels().rms_norm(x.data(), w.data(), 1e-5f, n, whole.data());
    const float mean = kernels().sum_of_squares(x.data(), n) / static_cast<float>(n);
    kernels().mul_scaled(x.data(), w.data(), 1.0f / std::sqrt(mean + 1e-5f), n, halves.data());
    ASSERT_EQ(whole, halves);
  }
}

double ExactActivation(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kQuickGelu:
      return x / (1.0 + std::exp(-1.702 * x));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kRelu2:
      return std::max(x, 0.0) * std::max(x, 0.0);
    case Activation::kSigmoid:
      return 1.0 / (1.0 + std::exp(-x));
  }
  return 0.0;
}

constexpr Activation kActivations[] = {Activation::kSilu,      Activation::kGelu, Activation::kGeluTanh,
                                       Activation::kQuickGelu, Activation::kRelu, Activation::kRelu2,
                                       Activation::kSigmoid};

TEST_P(KernelsTest, ActivationsAgreeWithThePlainLoop) {
  for (const Activation activation : kActivations) {
    for (int64_t n = 0; n < 70; ++n) {
      const std::vector<float> x = Floats(n, 5.0f), factor = Floats(n);
      std::vector<float> y(static_cast<size_t>(n)), alone(static_cast<size_t>(n));
      kernels().activation(activation, x.data(), factor.data(), n, y.data());
      kernels().activation(activation, x.data(), nullptr, n, alone.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const double exact = ExactActivation(activation, x[i]);
        ASSERT_NEAR(alone[i], exact, 1e-6 * (1.0 + std::abs(exact))) << x[i];
        ASSERT_EQ(y[i], alone[i] * factor[i]);
      }
    }
  }
}

TEST_P(KernelsTest, ActivationsHandleSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Activation activation : kActivations) {
    const std::vector<float> x = {-80.0f, -0.0f, 0.0f, 80.0f, std::numeric_limits<float>::quiet_NaN()};
    std::vector<float> y(x.size());
    kernels().activation(activation, x.data(), nullptr, static_cast<int64_t>(x.size()), y.data());
    EXPECT_TRUE(std::isnan(y[4]));
    EXPECT_NEAR(y[0], 0.0f, 1e-20f);
    if (activation == Activation::kSigmoid) continue;
    EXPECT_EQ(y[1], 0.0f);
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[3], activation == Activation::kRelu2 ? 6400.0f : 80.0f);
    float large = infinity;
    kernels().activation(activation, &large, nullptr, 1, &large);
    EXPECT_FALSE(large <= std::numeric_limits<float>::max())
        << "must be infinity or NaN, so that the sampler detects it";
  }
}

TEST_P(KernelsTest, ClampedSwigluAgreesWithThePlainLoop) {
  for (int64_t n = 0; n < 70; ++n) {
    const float limit = n % 2 == 0 ? 7.0f : 1.5f;
    const std::vector<float> gate = Floats(n, 5.0f), up = Floats(n, 5.0f);
    std::vector<float> y(static_cast<size_t>(n) + 1, 99.0f);
    kernels().clamped_swiglu(gate.data(), up.data(), 1.702f, limit, n, y.data());
    for (size_t i = 0; i < gate.size(); ++i) {
      const double g = std::min(gate[i], limit), u = std::clamp(up[i], -limit, limit);
      const double exact = (u + 1.0) * g / (1.0 + std::exp(-1.702 * g));
      ASSERT_NEAR(y[i], exact, 1e-6 * (1.0 + std::abs(exact))) << gate[i] << " " << up[i];
    }
    ASSERT_EQ(y[static_cast<size_t>(n)], 99.0f);
  }
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> gate = {nan, 1.0f, infinity, -infinity};
  const std::vector<float> up = {1.0f, nan, infinity, 1.0f};
  kernels().clamped_swiglu(gate.data(), up.data(), 1.702f, 7.0f, 4, gate.data());
  EXPECT_TRUE(std::isnan(gate[0]));
  EXPECT_TRUE(std::isnan(gate[1]));
  EXPECT_NEAR(gate[2], 56.0f, 1e-3f);
  EXPECT_FALSE(gate[3] > 0.0f);
}

TEST_P(KernelsTest, SoftCapAgreesWithThePlainLoop) {
  for (int round = 0; round < 100; ++round) {
    const int64_t n = Int(1, 60);
    const float cap = std::array{0.5f, 3.0f, 30.0f, 50.0f}[static_cast<size_t>(round % 4)];
    const std::vector<float> x = Floats(n, round % 3 == 0 ? 1e-3f : 3.0f * cap);
    std::vector<float> y = x;
    kernels().soft_cap(y.data(), cap, n);
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = cap * std::tanh(static_cast<double>(x[i]) / cap);
      ASSERT_NEAR(y[i] / exact, 1.0, 1e-6) << x[i] << " capped at " << cap;
    }
  }
  std::vector<float> edges = {std::numeric_limits<float>::infinity(), -1e30f, 0.0f,
                              std::numeric_limits<float>::quiet_NaN()};
  kernels().soft_cap(edges.data(), 30.0f, 4);
  EXPECT_NEAR(edges[0], 30.0f, 1e-5f);
  EXPECT_NEAR(edges[1], -30.0f, 1e-5f);
  EXPECT_EQ(edges[2], 0.0f);
  EXPECT_TRUE(std::isnan(edges[3]));
}

TEST_P(KernelsTest, ScaleAndAddScaledDoNotWritePastTheEnd) {
  for (int64_t n = 0; n < 50; ++n) {
    std::vector<float> x(static_cast<size_t>(n) + 1, 1.0f), y(static_cast<size_t>(n) + 1, 2.0f);
    kernels().add_scaled(x.data(), y.data(), 0.5f, n);
    kernels().scale(y.data(), 3.0f, n);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(x[static_cast<size_t>(i)], 2.0f);
      ASSERT_EQ(y[static_cast<size_t>(i)], 6.0f);
    }
    ASSERT_EQ(x[static_cast<size_t>(n)], 1.0f);
    ASSERT_EQ(y[static_cast<size_t>(n)], 2.0f);
  }
}

TEST_P(KernelsTest, RotaryRotatesPairsHalfAHeadApart) {
  for (int64_t half = 1; half < 70; ++half) {
    std::vector<float> head = Floats(2 * half);
    const std::vector<float> before = head, cos = Floats(half), sin = Floats(half);
    kernels().rotary(head.data(), cos.data(), sin.data(), half);
    for (size_t i = 0; i < static_cast<size_t>(half); ++i) {
      const float a = before[i], b = before[i + static_cast<size_t>(half)];
      ASSERT_NEAR(head[i], a * cos[i] - b * sin[i], 1e-5);
      ASSERT_NEAR(head[i + static_cast<size_t>(half)], b * cos[i] + a * sin[i], 1e-5);
    }
  }
}

TEST_P(KernelsTest, RotaryNeighborsRotatesNeighboringPairs) {
  for (int64_t half = 1; half < 70; ++half) {
    std::vector<float> head = Floats(2 * half);
    const std::vector<float> before = head, cos = Floats(half), sin = Floats(half);
    kernels().rotary_neighbors(head.data(), cos.data(), sin.data(), half);
    for (size_t i = 0; i < static_cast<size_t>(half); ++i) {
      const float a = before[2 * i], b = before[2 * i + 1];
      ASSERT_NEAR(head[2 * i], a * cos[i] - b * sin[i], 1e-5);
      ASSERT_NEAR(head[2 * i + 1], b * cos[i] + a * sin[i], 1e-5);
    }
  }
}

TEST_P(KernelsTest, AddDoesNotWritePastTheEnd) {
  for (int64_t n = 0; n < 50; ++n) {
    std::vector<float> x(static_cast<size_t>(n) + 1, 1.0f), y(static_cast<size_t>(n) + 1, 2.0f);
    kernels().add(x.data(), y.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(x[static_cast<size_t>(i)], 3.0f);
    ASSERT_EQ(x[static_cast<size_t>(n)], 1.0f);
  }
}

}  // namespace
}  // namespace vllm::kernels
