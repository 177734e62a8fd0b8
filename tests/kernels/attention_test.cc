// Compares the paged attention kernels with a plain softmax(q K^T) V. Also tests that the result of a row does not
// depend on the other rows of its task, or on the task that computes a partition.
#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "tests/kernels/named_attention.h"
#include "tests/support/random_values.h"

namespace vllm::kernels {
namespace {

// The Q, K and V of one request, with a shuffled block table and a cache whose unused slots hold NaN.
struct Case {
  int64_t head_dim, kv_heads, group, block_size, length, window;
  KVDType dtype;
  std::vector<float> query, key, value;  // [length, heads * head_dim]; query begins with an extra element
  std::vector<int32_t> blocks;
  std::vector<std::byte> key_cache, value_cache;
  std::vector<float> sinks;  // [kv_heads * group], or empty
  std::vector<float> bias;   // [kv_heads * group, 2 * span + 1], or empty
  AttentionArgs args;

  Case(std::mt19937& random, int64_t dim, int64_t kv, int64_t g, int64_t bs, int64_t len, int64_t win, KVDType type)
      : head_dim(dim), kv_heads(kv), group(g), block_size(bs), length(len), window(win), dtype(type) {
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& v, int64_t n) {
      v.resize(static_cast<size_t>(n));
      for (float& x : v) x = normal(random);
    };
    // The queries begin at the second element, so that they are aligned only to the size of a float.
    fill(query, 1 + length * kv * g * dim);
    fill(key, length * kv * dim);
    fill(value, length * kv * dim);
    const int64_t num_blocks = (length + bs - 1) / bs + 3;
    blocks.resize(static_cast<size_t>(num_blocks));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), random);
    args.layout = {type, bs, kv, dim};
    // Bytes of 0xff are NaN in every floating-point type. With int8, they make the scales NaN.
    key_cache.assign(static_cast<size_t>(num_blocks * kv * args.layout.KeyBytes()), std::byte{0xff});
    value_cache.assign(static_cast<size_t>(num_blocks * kv * args.layout.ValueBytes()), std::byte{0xff});
    args.key_cache = key_cache.data();
    args.value_cache = value_cache.data();
    args.num_queries_per_kv = g;
    args.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
    args.sliding_window = win;
    args.query = query.data() + 1;
    args.query_stride = kv * g * dim;
    args.out_stride = args.query_stride;
    for (int64_t t = 0; t < length; ++t) {
      const int64_t slot = blocks[static_cast<size_t>(t / bs)] * bs + t % bs;
      for (int64_t h = 0; h < kv; ++h) {
        WriteKV(args.layout, key_cache.data(), value_cache.data(), slot, h, key.data() + (t * kv + h) * dim,
                value.data() + (t * kv + h) * dim);
      }
    }
  }

  void AddSinks(std::vector<float> logits) {
    sinks = std::move(logits);
    args.sinks = sinks.data();
  }

  void AddPositionBias(int64_t span, std::vector<float> values) {
    bias = std::move(values);
    args.position_bias = bias.data();
    args.position_bias_span = span;
  }

  // Runs all rows, `rows_per_task` rows per task.
  std::vector<float> Run(const AttentionKernels& kernels, int64_t rows_per_task) {
    std::vector<float> out(query.size() - 1, -1.0f);
    args.out = out.data();
    std::vector<float> scratch = Scratch();
    const std::vector<AttentionRow> rows = Rows();
    for (int64_t row = 0; row < length; row += rows_per_task) {
      for (int64_t h = 0; h < kv_heads; ++h) {
        kernels.forward(
            args, {&rows[static_cast<size_t>(row)], std::min(rows_per_task, length - row), blocks.data(), h, nullptr},
            scratch.data());
      }
    }
    return out;
  }

  // First computes random partitions for random groups of rows. Then runs each row as a separate task, which uses these
  // partitions and computes the others.
  std::vector<float> RunWithPartials(const AttentionKernels& kernels, std::mt19937& random) {
    const auto pick = [&](int64_t high) { return std::uniform_int_distribution<int64_t>(0, high)(random); };
    std::vector<float> out(query.size() - 1, -1.0f);
    args.out = out.data();
    std::vector<float> scratch = Scratch();
    const std::vector<AttentionRow> rows = Rows();
    const int64_t partitions = (length + kKVPartition - 1) / kKVPartition;
    std::vector<float> partials(static_cast<size_t>(length * partitions * kv_heads * group * PartialFloats(head_dim)),
                                std::numeric_limits<float>::quiet_NaN());
    args.partials = partials.data();
    std::vector<std::vector<int32_t>> slots(static_cast<size_t>(length),
                                            std::vector<int32_t>(static_cast<size_t>(partitions), -1));
    std::vector<AttentionRow> shuffled = rows;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    int64_t slot = 0;
    for (int64_t partition = 0; partition < partitions; ++partition) {
      for (size_t next = 0; next < shuffled.size();) {
        const int64_t max_count = std::max<int64_t>(1, kMaxQueriesPerTask / group);
        const auto count =
            static_cast<size_t>(std::min(1 + pick(max_count - 1), static_cast<int64_t>(shuffled.size() - next)));
        if (pick(2) > 0) {
          for (int64_t h = 0; h < kv_heads; ++h) {
            kernels.forward_partial(args, {&shuffled[next], static_cast<int64_t>(count), blocks.data(), h, nullptr},
                                    partition, slot, scratch.data());
          }
          for (size_t i = 0; i < count; ++i)
            slots[static_cast<size_t>(shuffled[next + i].row)][static_cast<size_t>(partition)] =
                static_cast<int32_t>(slot++);
        }
        next += count;
      }
    }
    for (int64_t row = 0; row < length; ++row) {
      for (int64_t h = 0; h < kv_heads; ++h) {
        kernels.forward(args,
                        {&rows[static_cast<size_t>(row)], 1, blocks.data(), h, slots[static_cast<size_t>(row)].data()},
                        scratch.data());
      }
    }
    return out;
  }

  std::vector<float> Scratch() const {
    return std::vector<float>(static_cast<size_t>(AttentionScratchFloats(args)),
                              std::numeric_limits<float>::quiet_NaN());
  }

  std::vector<AttentionRow> Rows() const {
    std::vector<AttentionRow> rows;
    for (int64_t row = 0; row < length; ++row) rows.push_back({row, row, length - 1});
    return rows;
  }

  // Returns the values of K or V, rounded as the cache stores them.
  std::vector<float> Stored(const std::vector<float>& from) const {
    std::vector<float> stored = from;
    for (size_t i = 0; i < stored.size(); i += static_cast<size_t>(head_dim)) {
      float largest = 0.0f;
      for (size_t d = i; d < i + static_cast<size_t>(head_dim); ++d) largest = std::max(largest, std::fabs(stored[d]));
      for (size_t d = i; d < i + static_cast<size_t>(head_dim); ++d) {
        if (dtype == KVDType::kBFloat16) stored[d] = BFloat16ToFloat(FloatToBFloat16(stored[d]));
        if (dtype == KVDType::kFloat16) stored[d] = Float16ToFloat(FloatToFloat16(stored[d]));
        if (dtype == KVDType::kInt8) stored[d] = std::nearbyintf(stored[d] / (largest / 127.0f)) * (largest / 127.0f);
      }
    }
    return stored;
  }

  // Returns the queries with the rounding error of kernels that use a bfloat16 dot product. Like those kernels, scales
  // each query before it rounds it to bfloat16, and then undoes the scaling.
  std::vector<float> Rounded() const {
    const float factor = args.softcap > 0.0f ? args.scale : args.scale * 1.44269504f;
    std::vector<float> rounded = query;
    for (float& x : rounded) x = BFloat16ToFloat(FloatToBFloat16(x * factor)) / factor;
    return rounded;
  }

  std::vector<double> Naive() const { return Naive(query, Stored(key), Stored(value)); }

  // If `magnitude` is not null, stores in it the sum of the absolute values of the terms of each output element.
  std::vector<double> Naive(const std::vector<float>& queries, const std::vector<float>& keys,
                            const std::vector<float>& values, std::vector<double>* magnitude = nullptr) const {
    std::vector<double> out(query.size() - 1);
    if (magnitude != nullptr) magnitude->resize(out.size());
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t h = 0; h < kv_heads * group; ++h) {
        const float* q = queries.data() + 1 + (t * kv_heads * group + h) * head_dim;
        const int64_t first = window > 0 ? std::max<int64_t>(0, t + 1 - window) : 0;
        const int64_t last = t + std::min(args.look_ahead, length - 1 - t);
        std::vector<double> p;
        double total = sinks.empty() ? 0.0 : std::exp(static_cast<double>(sinks[static_cast<size_t>(h)]));
        for (int64_t s = first; s <= last; ++s) {
          double dot = 0.0;
          for (int64_t d = 0; d < head_dim; ++d) {
            dot += static_cast<double>(q[d]) * keys[static_cast<size_t>((s * kv_heads + h / group) * head_dim + d)];
          }
          double score = dot * static_cast<double>(args.scale);
          if (args.softcap > 0.0f) score = args.softcap * std::tanh(score / args.softcap);
          if (!bias.empty()) {
            const int64_t span = args.position_bias_span;
            score += bias[static_cast<size_t>(h * (2 * span + 1) + std::clamp(s - t, -span, span) + span)];
          }
          p.push_back(std::exp(score));
          total += p.back();
        }
        for (int64_t d = 0; d < head_dim; ++d) {
          double sum = 0.0, size = 0.0;
          for (int64_t s = first; s <= last; ++s) {
            const double term = p[static_cast<size_t>(s - first)] / total *
                                values[static_cast<size_t>((s * kv_heads + h / group) * head_dim + d)];
            sum += term;
            size += std::fabs(term);
          }
          out[static_cast<size_t>((t * kv_heads * group + h) * head_dim + d)] = sum;
          if (magnitude != nullptr) (*magnitude)[static_cast<size_t>((t * kv_heads * group + h) * head_dim + d)] = size;
        }
      }
    }
    return out;
  }
};

constexpr KVDType kTypes[] = {KVDType::kFloat32, KVDType::kBFloat16, KVDType::kFloat16, KVDType::kInt8};

class RandomCases : protected testing_support::RandomValues {
 protected:
  RandomCases() : RandomValues(11) {}

  Case RandomCase(int round) {
    const KVDType dtype = kTypes[static_cast<size_t>(round / 8 % 4)];
    const int64_t dims[] = {8, 15, 24, 40, 64, 80, 128, 160};
    const int64_t window = round % 4 == 0 ? Int(1, 300) : 0;
    Case c(random_, dims[static_cast<size_t>(round) % 8], Int(1, 3), Int(1, round % 3 == 0 ? 15 : 5), 16 * Int(1, 3),
           Int(1, round % 5 == 0 ? 600 : 60), window, dtype);
    if (round % 3 == 1) c.args.softcap = 1.5f;
    // With a window, an encoder's layers look as far ahead as back.
    if (round % 3 == 2) c.args.look_ahead = window > 0 ? window - 1 : round % 2 == 0 ? kLookAheadAll : Int(1, 50);
    if (round % 2 == 1) c.AddSinks(Floats(c.kv_heads * c.group, 3.0f));
    if (round % 3 != 0) {
      const int64_t span = Int(0, 1) == 0 ? Int(0, 20) : Int(20, 300);
      c.AddPositionBias(span, Floats(c.kv_heads * c.group * (2 * span + 1), 2.0f));
    }
    return c;
  }
};

class AttentionTest : public testing::TestWithParam<NamedAttention>, protected RandomCases {
 protected:
  const AttentionKernels& kernels() const { return *GetParam().kernels; }
};

INSTANTIATE_TEST_SUITE_P(Isas, AttentionTest, testing::ValuesIn(AllAttentionKernels()),
                         [](const auto& attention) { return attention.param.name; });

// With a dot product of bfloat16 pairs, softmax weights have a relative error of up to 1/256. The reference rounds the
// queries too, but an element halfway between two values may be rounded the other way.
TEST_P(AttentionTest, AgreesWithPlainSoftmax) {
  for (int round = 0; round < 40; ++round) {
    Case c = RandomCase(round);
    const std::vector<float> out = c.Run(kernels(), 1);
    const bool rounds = GetParam().RoundsToBFloat16() && c.dtype == KVDType::kBFloat16;
    std::vector<double> magnitude;
    const std::vector<double> naive =
        c.Naive(rounds ? c.Rounded() : c.query, c.Stored(c.key), c.Stored(c.value), &magnitude);
    for (size_t i = 0; i < out.size(); ++i) {
      const double bound = 5e-6 + (rounds ? magnitude[i] / 256.0 : 0.0);
      ASSERT_NEAR(out[i], naive[i], bound) << "round " << round << " at " << i;
    }
  }
}

TEST_P(AttentionTest, ResultsAreBitIdenticalForAnyGroupingOfRows) {
  for (int round = 0; round < 40; ++round) {
    Case c = RandomCase(round);
    const std::vector<float> one = c.Run(kernels(), 1);
    for (int64_t rows = 2; rows * c.group <= kMaxQueriesPerTask; rows += 3) {
      const std::vector<float> grouped = c.Run(kernels(), rows);
      ASSERT_EQ(0, std::memcmp(one.data(), grouped.data(), one.size() * sizeof(float)))
          << "round " << round << " rows " << rows;
    }
  }
}

// The windows of the rows of a task do not overlap, or only in part.
TEST_P(AttentionTest, ResultsWithShortWindowsAreBitIdenticalForAnyGroupingOfRows) {
  for (const KVDType dtype : kTypes) {
    for (const int64_t window : {1, 5, 17, 40}) {
      Case c(random_, 64, 2, 1, 16, 300, window, dtype);
      const std::vector<float> one = c.Run(kernels(), 1);
      for (const int64_t rows : {2, 21, 64}) {
        const std::vector<float> grouped = c.Run(kernels(), rows);
        ASSERT_EQ(0, std::memcmp(one.data(), grouped.data(), one.size() * sizeof(float)))
            << ToString(dtype) << " window " << window << " rows " << rows;
      }
    }
  }
}

TEST_P(AttentionTest, ResultsAreBitIdenticalWithPrecomputedPartitions) {
  for (int round = 0; round < 40; ++round) {
    Case c = RandomCase(round);
    const std::vector<float> one = c.Run(kernels(), 1);
    const std::vector<float> ahead = c.RunWithPartials(kernels(), random_);
    ASSERT_EQ(0, std::memcmp(one.data(), ahead.data(), one.size() * sizeof(float))) << "round " << round;
  }
}

// Rounding to int8 changes an element of a key or value by at most half a scale, which is 1/254 of the largest
// magnitude of its vector. For normally distributed numbers that magnitude is usually below 3.5 standard deviations, so
// the error is usually below 1.4 % of a standard deviation. Such errors partly cancel out: those of a key in the dot
// product over the dimensions, and those of the values in the weighted sum over the positions.
TEST_P(AttentionTest, Int8KVRmsErrorIsBelowThreeThousandthsOfTheStandardDeviation) {
  for (const int64_t dim : {64, 128}) {
    Case c(random_, dim, 2, 2, 32, 300, 0, KVDType::kInt8);
    const std::vector<float> out = c.Run(kernels(), 3);
    const std::vector<double> exact = c.Naive(c.query, c.key, c.value);
    double errors = 0.0, largest = 0.0;
    for (size_t i = 0; i < out.size(); ++i) {
      const double error = std::fabs(out[i] - exact[i]);
      errors += error * error;
      largest = std::max(largest, error);
    }
    // V has standard deviation 1.
    EXPECT_LT(std::sqrt(errors / static_cast<double>(out.size())), 0.003) << dim;
    EXPECT_LT(largest, 0.05) << dim;
  }
}

TEST_P(AttentionTest, NonFiniteKeyInInt8KVCacheMakesItsRowAndLaterRowsNaN) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Case c(random_, 16, 1, 1, 16, 20, 0, KVDType::kInt8);
    c.key[7 * 16 + 3] = bad;
    WriteKV(c.args.layout, c.key_cache.data(), c.value_cache.data(), c.blocks[0] * 16 + 7, 0, &c.key[7 * 16],
            &c.value[7 * 16]);
    const std::vector<float> out = c.Run(kernels(), 4);
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(std::isnan(out[i]), i >= 7 * 16) << i;
  }
}

TEST_P(AttentionTest, RowsBeforeANaNValueAreNotAffected) {
  for (const KVDType dtype : kTypes) {
    for (const int64_t token : {6, 7}) {
      Case c(random_, 16, 1, 3, 16, 20, 0, dtype);
      float* value = &c.value[static_cast<size_t>(token * 16)];
      value[3] = std::numeric_limits<float>::quiet_NaN();
      WriteKV(c.args.layout, c.key_cache.data(), c.value_cache.data(), c.blocks[0] * 16 + token, 0,
              &c.key[static_cast<size_t>(token * 16)], value);
      const std::vector<float> out = c.Run(kernels(), 4);
      for (size_t i = 0; i < out.size(); ++i) {
        const bool sees = static_cast<int64_t>(i) >= token * 3 * 16 && (dtype == KVDType::kInt8 || i % 16 == 3);
        ASSERT_EQ(std::isnan(out[i]), sees) << ToString(dtype) << " " << token << " at " << i;
      }
    }
  }
}

TEST_P(AttentionTest, ZeroAndTinyValuesInInt8KVCacheGiveNearlyZero) {
  for (const float tiny : {0.0f, std::numeric_limits<float>::denorm_min(), 1e-38f}) {
    Case c(random_, 16, 1, 1, 16, 1, 0, KVDType::kInt8);
    std::fill(c.value.begin(), c.value.end(), tiny);
    WriteKV(c.args.layout, c.key_cache.data(), c.value_cache.data(), c.blocks[0] * 16, 0, c.key.data(), c.value.data());
    for (const float x : c.Run(kernels(), 1)) ASSERT_NEAR(x, 0.0f, 2e-38f);
  }
}

TEST_P(AttentionTest, BlocksOfSeveralLayersMayAlternateInOneBuffer) {
  for (const KVDType dtype : kTypes) {
    Case c(random_, 20, 2, 2, 32, 300, 0, dtype);
    const std::vector<float> expected = c.Run(kernels(), 5);
    const KVCacheLayout adjacent = c.args.layout;
    const int64_t key_bytes = adjacent.KeyStride();
    c.args.layout.block_stride = adjacent.BlockBytes() + 128;
    std::vector<std::byte> cache(c.blocks.size() * static_cast<size_t>(c.args.layout.block_stride), std::byte{0xff});
    c.args.key_cache = cache.data() + 64;
    c.args.value_cache = cache.data() + 64 + key_bytes;
    for (int64_t t = 0; t < c.length; ++t) {
      const int64_t slot = c.blocks[static_cast<size_t>(t / 32)] * 32 + t % 32;
      for (int64_t h = 0; h < 2; ++h) {
        const auto at = static_cast<size_t>((t * 2 + h) * 20);
        WriteKV(c.args.layout, cache.data() + 64, cache.data() + 64 + key_bytes, slot, h, &c.key[at], &c.value[at]);
      }
    }
    EXPECT_EQ(c.Run(kernels(), 5), expected) << ToString(dtype);
  }
}

TEST_P(AttentionTest, LargeSinkTakesAllTheWeightAndSmallSinkNone) {
  Case c(random_, 16, 2, 2, 16, 20, 0, KVDType::kFloat32);
  const std::vector<float> without = c.Run(kernels(), 1);
  c.AddSinks({-std::numeric_limits<float>::infinity(), -1e30f, 300.0f, 1e30f});
  const std::vector<float> with = c.Run(kernels(), 1);
  for (size_t i = 0; i < with.size(); ++i) {
    const size_t head = i / 16 % 4;
    ASSERT_EQ(with[i], head < 2 ? without[i] : 0.0f) << i;
  }
}

TEST_P(AttentionTest, TaskOfOneRowMayExceedTheMaximumNumberOfQueries) {
  Case c(random_, 16, 1, 71, 16, 20, 0, KVDType::kFloat32);
  const std::vector<float> out = c.Run(kernels(), 1);
  const std::vector<double> naive = c.Naive();
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], naive[i], 5e-6);
}

class SameBitsAttentionTest : public testing::Test, protected RandomCases {
 protected:
  // Compares two kernels. A CPU that does not support both has nothing to compare.
  void Compare(std::string_view name, std::string_view other) {
    const std::vector<NamedAttention> all = AllAttentionKernels();
    const auto one = std::ranges::find(all, name, &NamedAttention::name);
    const auto two = std::ranges::find(all, other, &NamedAttention::name);
    if (one == all.end() || two == all.end()) return;
    for (int round = 0; round < 120; ++round) {
      Case c = RandomCase(round);
      const std::vector<float> expected = c.Run(*one->kernels, 3);
      const std::vector<float> out = c.Run(*two->kernels, 3);
      ASSERT_EQ(0, std::memcmp(out.data(), expected.data(), out.size() * sizeof(float))) << "round " << round;
    }
  }
};

TEST_F(SameBitsAttentionTest, EmulatedAmxHasTheBitsOfTheCpu) { Compare("avx512_amx", "avx512_amx_emulated"); }

TEST_F(SameBitsAttentionTest, FmasHaveTheBitsOfDotProducts) { Compare("avx512_bf16", "avx512_bf16_fmas"); }

}  // namespace
}  // namespace vllm::kernels
