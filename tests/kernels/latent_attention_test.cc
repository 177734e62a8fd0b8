// Compares latent attention, where a token has one vector that is its key and, in the first elements, its value, with a
// plain softmax(q K^T) V. Also tests that the result of a row does not depend on the other rows of its task, or on the
// task that computes a partition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "kernels/attention.h"
#include "tests/kernels/named_attention.h"
#include "tests/support/random_values.h"

namespace vllm::kernels {
namespace {

constexpr KVDType kTypes[] = {KVDType::kFloat32, KVDType::kBFloat16, KVDType::kFloat16, KVDType::kInt8};

// One request, with a shuffled block table and a cache whose unused slots hold NaN.
struct Case {
  int64_t dim, value_dim, heads, length;
  std::vector<float> query, vectors;  // [length, heads, dim], [length, dim]
  std::vector<int32_t> blocks;
  std::vector<std::byte> cache;
  std::vector<AttentionRow> rows;
  AttentionArgs args;

  Case(std::mt19937& random, int64_t d, int64_t v, int64_t num_heads, int64_t len, int64_t block_size, KVDType dtype)
      : dim(d), value_dim(v), heads(num_heads), length(len) {
    std::normal_distribution<float> normal;
    query.resize(static_cast<size_t>(length * heads * dim));
    vectors.resize(static_cast<size_t>(length * dim));
    for (float& x : query) x = normal(random);
    for (float& x : vectors) x = normal(random);
    blocks.resize(static_cast<size_t>(length / block_size + 3));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), random);
    args.layout = {.dtype = dtype, .block_size = block_size, .head_dim = dim, .value_dim = value_dim};
    cache.assign(blocks.size() * static_cast<size_t>(args.layout.ValueBytes()), std::byte{0xff});
    args.value_cache = cache.data();
    args.num_queries_per_kv = heads;
    args.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
    args.query = query.data();
    args.query_stride = heads * dim;
    args.out_stride = heads * value_dim;
    for (int64_t t = 0; t < length; ++t) {
      rows.push_back({t, t});
      Write(t);
    }
  }

  void Write(int64_t t) {
    const int64_t block_size = args.layout.block_size;
    const int64_t slot = blocks[static_cast<size_t>(t / block_size)] * block_size + t % block_size;
    WriteKV(args.layout, nullptr, cache.data(), slot, 0, vectors.data() + t * dim, nullptr);
  }

  std::vector<float> Scratch() const {
    return std::vector<float>(static_cast<size_t>(AttentionScratchFloats(args)),
                              std::numeric_limits<float>::quiet_NaN());
  }

  std::vector<float> Run(const AttentionKernels& kernels, int64_t rows_per_task) {
    std::vector<float> out(static_cast<size_t>(length * args.out_stride), -1.0f);
    args.out = out.data();
    std::vector<float> scratch = Scratch();
    for (int64_t row = 0; row < length; row += rows_per_task) {
      const int64_t count = std::min(rows_per_task, length - row);
      kernels.forward(args, {&rows[static_cast<size_t>(row)], count, blocks.data(), 0, nullptr}, scratch.data());
    }
    return out;
  }

  // Computes the first partition of all rows in tasks of `rows_per_task` rows, then each row in a task that uses it.
  std::vector<float> RunWithPartials(const AttentionKernels& kernels, int64_t rows_per_task) {
    std::vector<float> out(static_cast<size_t>(length * args.out_stride), -1.0f);
    args.out = out.data();
    std::vector<float> scratch = Scratch();
    std::vector<float> partials(static_cast<size_t>(length * heads * PartialFloats(value_dim)));
    args.partials = partials.data();
    for (int64_t row = 0; row < length; row += rows_per_task) {
      const int64_t count = std::min(rows_per_task, length - row);
      kernels.forward_partial(args, {&rows[static_cast<size_t>(row)], count, blocks.data(), 0, nullptr}, 0, row,
                              scratch.data());
    }
    std::vector<int32_t> slots(static_cast<size_t>(length / kKVPartition + 1), -1);
    for (int64_t row = 0; row < length; ++row) {
      slots[0] = static_cast<int32_t>(row);
      kernels.forward(args, {&rows[static_cast<size_t>(row)], 1, blocks.data(), 0, slots.data()}, scratch.data());
    }
    return out;
  }

  // Returns element i of the vectors, rounded as the cache stores it.
  double Stored(size_t i) const {
    const float x = vectors[i];
    switch (args.layout.dtype) {
      case KVDType::kFloat32:
        break;
      case KVDType::kBFloat16:
        return BFloat16ToFloat(FloatToBFloat16(x));
      case KVDType::kFloat16:
        return Float16ToFloat(FloatToFloat16(x));
      case KVDType::kInt8: {
        const size_t begin = i / static_cast<size_t>(dim) * static_cast<size_t>(dim);
        float largest = 0.0f;
        for (size_t k = begin; k < begin + static_cast<size_t>(dim); ++k)
          largest = std::max(largest, std::fabs(vectors[k]));
        return std::nearbyintf(x / (largest / 127.0f)) * (largest / 127.0f);
      }
    }
    return x;
  }

  std::vector<double> Naive() const {
    std::vector<double> stored(vectors.size());
    for (size_t i = 0; i < stored.size(); ++i) stored[i] = Stored(i);
    std::vector<double> out;
    for (int64_t i = 0; i < length * heads; ++i) {
      const int64_t row = i / heads;
      std::vector<double> weights;
      double total = 0.0;
      for (int64_t t = 0; t <= row; ++t) {
        double score = 0.0;
        for (int64_t d = 0; d < dim; ++d) {
          score += double{query[static_cast<size_t>(i * dim + d)]} * stored[static_cast<size_t>(t * dim + d)];
        }
        weights.push_back(std::exp(score * double{args.scale}));
        total += weights.back();
      }
      for (int64_t d = 0; d < value_dim; ++d) {
        double sum = 0.0;
        for (int64_t t = 0; t <= row; ++t) {
          sum += weights[static_cast<size_t>(t)] / total * stored[static_cast<size_t>(t * dim + d)];
        }
        out.push_back(sum);
      }
    }
    return out;
  }
};

class LatentAttentionTest : public testing::TestWithParam<NamedAttention>, protected testing_support::RandomValues {
 protected:
  LatentAttentionTest() : RandomValues(12) {}

  const AttentionKernels& kernels() const { return *GetParam().kernels; }
  Case RandomCase(int round) {
    const KVDType dtype = kTypes[static_cast<size_t>(round) % 4];
    const int64_t value_dims[] = {5, 16, 20, 32, 64, 90, 128};
    const int64_t value_dim = value_dims[static_cast<size_t>(round) % 7];
    return Case(random_, value_dim + Int(1, 40), value_dim, Int(1, round % 5 == 0 ? 70 : 20),
                round % 4 == 0 ? Int(257, 300) : Int(1, 40), 16 * Int(1, 3), dtype);
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, LatentAttentionTest, testing::ValuesIn(AllAttentionKernels()),
                         [](const auto& attention) { return attention.param.name; });

TEST_P(LatentAttentionTest, AgreesWithPlainSoftmax) {
  for (int round = 0; round < 21; ++round) {
    Case c = RandomCase(round);
    const std::vector<float> out = c.Run(kernels(), 1);
    const std::vector<double> naive = c.Naive();
    // A dot product of bfloat16 pairs rounds the softmax weights.
    const bool rounds = GetParam().RoundsToBFloat16() && c.args.layout.dtype == KVDType::kBFloat16;
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], naive[i], rounds ? 2e-2 : 1e-5) << round << " at " << i;
  }
}

TEST_P(LatentAttentionTest, ResultsAreBitIdenticalForAnyGroupingOfRows) {
  for (int round = 0; round < 21; ++round) {
    Case c = RandomCase(round);
    const std::vector<float> one = c.Run(kernels(), 1);
    for (int64_t rows = 2; rows * c.heads <= kMaxQueriesPerTask; rows += 3) {
      ASSERT_EQ(0, std::memcmp(one.data(), c.Run(kernels(), rows).data(), one.size() * sizeof(float)))
          << round << " rows " << rows;
    }
  }
}

TEST_P(LatentAttentionTest, ResultsAreBitIdenticalWithPrecomputedPartitions) {
  for (int round = 0; round < 21; ++round) {
    Case c = RandomCase(round);
    const std::vector<float> one = c.Run(kernels(), 1);
    const std::vector<float> ahead = c.RunWithPartials(kernels(), std::max<int64_t>(1, kMaxQueriesPerTask / c.heads));
    ASSERT_EQ(0, std::memcmp(one.data(), ahead.data(), one.size() * sizeof(float))) << round;
  }
}

TEST_P(LatentAttentionTest, OutputMayReplaceTheQueries) {
  for (const KVDType dtype : kTypes) {
    Case c(random_, 40, 24, 5, 70, 16, dtype);
    const std::vector<float> separate = c.Run(kernels(), 3);
    c.args.out = c.query.data();
    const int64_t out_stride = std::exchange(c.args.out_stride, c.args.query_stride);
    std::vector<float> scratch = c.Scratch();
    for (int64_t row = 0; row < c.length; row += 3) {
      const int64_t count = std::min<int64_t>(3, c.length - row);
      kernels().forward(c.args, {&c.rows[static_cast<size_t>(row)], count, c.blocks.data(), 0, nullptr},
                        scratch.data());
    }
    for (int64_t row = 0; row < c.length; ++row) {
      ASSERT_EQ(0, std::memcmp(separate.data() + row * out_stride, c.query.data() + row * c.args.query_stride,
                               static_cast<size_t>(out_stride) * sizeof(float)))
          << ToString(dtype) << " row " << row;
    }
  }
}

TEST_P(LatentAttentionTest, RowsBeforeANaNVectorAreNotAffected) {
  for (const KVDType dtype : kTypes) {
    for (const int64_t token : {6, 7}) {
      Case c(random_, 24, 16, 3, 20, 16, dtype);
      c.vectors[static_cast<size_t>(token * c.dim + 3)] = std::numeric_limits<float>::quiet_NaN();
      c.Write(token);
      const std::vector<float> out = c.Run(kernels(), 4);
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(std::isnan(out[i]), static_cast<int64_t>(i) >= token * c.args.out_stride) << ToString(dtype) << i;
      }
    }
  }
}

TEST_P(LatentAttentionTest, CacheHoldsOneVectorPerToken) {
  EXPECT_EQ(
      (KVCacheLayout{.dtype = KVDType::kBFloat16, .block_size = 16, .head_dim = 576, .value_dim = 512}).BlockBytes(),
      16 * 576 * 2);
  EXPECT_EQ((KVCacheLayout{.dtype = KVDType::kInt8, .block_size = 32, .head_dim = 576, .value_dim = 512}).BlockBytes(),
            32 * (576 + 4));
}

}  // namespace
}  // namespace vllm::kernels
