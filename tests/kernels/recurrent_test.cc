// Compares the kernels of layers with recurrent state with plain loops, and their results for different divisions of a
// sequence with each other.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/isa/kernels_for.h"
#include "tests/support/random_values.h"

namespace vllm::kernels {
namespace {

class RecurrentKernelsTest : public testing::TestWithParam<Isa>, protected testing_support::RandomValues {
 protected:
  RecurrentKernelsTest() : RandomValues(11) {}

  const RecurrentKernels& kernels() const { return *KernelsFor(GetParam()).recurrent; }
};

INSTANTIATE_TEST_SUITE_P(Isas, RecurrentKernelsTest, testing::ValuesIn(AvailableIsas()),
                         [](const auto& isa) { return std::string(ToString(isa.param)); });

// A random head with `num_rows` tokens.
struct Head {
  LinearRecurrenceArgs args;
  std::vector<float> query, key, value, decay, beta, state, out;

  LinearRecurrenceArgs Args(int64_t first, int64_t count) {
    LinearRecurrenceArgs part = args;
    part.num_rows = count;
    part.query = query.data() + first * args.key_stride;
    part.key = key.data() + first * args.key_stride;
    part.value = value.data() + first * args.value_stride;
    part.decay = decay.data() + first * args.gate_stride;
    part.beta = beta.data() + first * args.gate_stride;
    part.state = state.data();
    part.out = out.data() + first * args.out_stride;
    return part;
  }
};

class RecurrenceTest : public RecurrentKernelsTest {
 protected:
  Head RandomHead(int64_t num_rows) {
    Head head;
    LinearRecurrenceArgs& args = head.args;
    args.num_rows = num_rows;
    args.key_dim = Int(1, 40);
    args.value_dim = Int(0, 3) == 0 ? 64 * Int(1, 2) : Int(1, 100);
    args.key_stride = args.key_dim + Int(0, 3);
    args.value_stride = args.value_dim + Int(0, 3);
    args.out_stride = args.value_dim + Int(0, 3);
    args.gate_stride = Int(1, 3);
    args.delta_rule = Int(0, 1) == 0;
    args.skip = Int(0, 1) == 0 ? 0.0f : Floats(1)[0];
    const float scale = 1.0f / std::sqrt(static_cast<float>(args.key_dim));
    head.query = Floats(num_rows * args.key_stride, scale);
    head.key = Floats(num_rows * args.key_stride, scale);
    head.value = Floats(num_rows * args.value_stride);
    for (int64_t i = 0; i < num_rows * args.gate_stride; ++i) {
      head.decay.push_back(static_cast<float>(Int(1, 1000)) / 1000.0f);
      head.beta.push_back(static_cast<float>(Int(0, 1000)) / 1000.0f);
    }
    head.state = Floats(args.key_dim * args.value_dim);
    head.out.assign(static_cast<size_t>(num_rows * args.out_stride), -77.0f);
    return head;
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, RecurrenceTest, testing::ValuesIn(AvailableIsas()),
                         [](const auto& isa) { return std::string(ToString(isa.param)); });

TEST_P(RecurrenceTest, AgreesWithThePlainLoop) {
  for (int round = 0; round < 200; ++round) {
    Head head = RandomHead(Int(1, 12));
    const LinearRecurrenceArgs args = head.Args(0, head.args.num_rows);
    std::vector<double> state(head.state.begin(), head.state.end());
    std::vector<double> expected;
    for (int64_t t = 0; t < args.num_rows; ++t) {
      const double decay = args.decay[t * args.gate_stride], beta = args.beta[t * args.gate_stride];
      for (int64_t j = 0; j < args.value_dim; ++j) {
        double u = args.value[t * args.value_stride + j];
        for (int64_t i = 0; i < args.key_dim && args.delta_rule; ++i) {
          u -= decay * args.key[t * args.key_stride + i] * state[static_cast<size_t>(i * args.value_dim + j)];
        }
        double out = static_cast<double>(args.skip) * args.value[t * args.value_stride + j];
        for (int64_t i = 0; i < args.key_dim; ++i) {
          double& s = state[static_cast<size_t>(i * args.value_dim + j)];
          s = decay * s + args.key[t * args.key_stride + i] * beta * u;
          out += args.query[t * args.key_stride + i] * s;
        }
        expected.push_back(out);
      }
    }
    kernels().linear_recurrence(args);
    for (size_t i = 0; i < state.size(); ++i) ASSERT_NEAR(head.state[i], state[i], 2e-5 * (1.0 + std::abs(state[i])));
    for (int64_t t = 0; t < args.num_rows; ++t) {
      for (int64_t j = 0; j < args.out_stride; ++j) {
        const float out = args.out[t * args.out_stride + j];
        if (j >= args.value_dim) {
          ASSERT_EQ(out, -77.0f);
        } else {
          ASSERT_NEAR(out, expected[static_cast<size_t>(t * args.value_dim + j)], 5e-5);
        }
      }
    }
  }
}

TEST_P(RecurrenceTest, DividingASequenceDoesNotChangeABit) {
  for (int round = 0; round < 100; ++round) {
    Head whole = RandomHead(Int(2, 20));
    Head parts = whole;
    kernels().linear_recurrence(whole.Args(0, whole.args.num_rows));
    for (int64_t first = 0; first < parts.args.num_rows;) {
      const int64_t count = Int(1, parts.args.num_rows - first);
      kernels().linear_recurrence(parts.Args(first, count));
      first += count;
    }
    ASSERT_EQ(whole.state, parts.state);
    ASSERT_EQ(whole.out, parts.out);
  }
}

TEST_P(RecurrenceTest, WithoutOutputOnlyTheStateChanges) {
  Head with = RandomHead(9);
  Head without = with;
  kernels().linear_recurrence(with.Args(0, 9));
  LinearRecurrenceArgs args = without.Args(0, 9);
  args.out = nullptr;
  kernels().linear_recurrence(args);
  EXPECT_EQ(with.state, without.state);
}

TEST_P(RecurrentKernelsTest, ConvolutionAgreesWithThePlainLoop) {
  for (int round = 0; round < 200; ++round) {
    const int64_t num_taps = Int(1, 5), n = Int(1, 70), stride = n + Int(0, 4);
    const std::vector<float> rows = Floats(num_taps * n), weight = Floats(num_taps * stride), bias = Floats(n);
    const bool has_bias = round % 2 == 0;
    std::vector<const float*> taps;
    for (int64_t t = 0; t < num_taps; ++t) taps.push_back(t < round % 3 ? nullptr : rows.data() + t * n);
    std::vector<float> out(static_cast<size_t>(n) + 1, -77.0f);
    kernels().causal_conv(taps.data(), num_taps, weight.data(), stride, has_bias ? bias.data() : nullptr, n,
                          out.data());
    for (int64_t i = 0; i < n; ++i) {
      double sum = has_bias ? bias[static_cast<size_t>(i)] : 0.0;
      for (int64_t t = 0; t < num_taps; ++t) {
        const float* const tap = taps[static_cast<size_t>(t)];
        if (tap != nullptr) sum += static_cast<double>(weight[static_cast<size_t>(t * stride + i)]) * tap[i];
      }
      ASSERT_NEAR(out[static_cast<size_t>(i)], sum, 1e-5);
    }
    ASSERT_EQ(out.back(), -77.0f);
  }
}

}  // namespace
}  // namespace vllm::kernels
