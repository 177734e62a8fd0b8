// The paged attention kernel against softmax(q K^T) V written out, and its independence from chunks, tiles and
// neighbours.
#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace vllm {
namespace {

// One request's K, V and Q with a shuffled block table, in a cache whose unused slots hold NaN.
struct Case {
  int64_t head_dim, kv_heads, group, block_size, length, window;
  DType dtype;
  std::vector<float> query, key, value;  // [length, heads * head_dim]
  std::vector<int32_t> blocks;
  std::vector<std::byte> key_cache, value_cache;
  AttentionArgs args;

  Case(std::mt19937& random, int64_t dim, int64_t kv, int64_t g, int64_t bs, int64_t len, int64_t win, DType type)
      : head_dim(dim), kv_heads(kv), group(g), block_size(bs), length(len), window(win), dtype(type) {
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& v, int64_t n) {
      v.resize(static_cast<size_t>(n));
      for (float& x : v) x = normal(random);
    };
    fill(query, length * kv * g * dim);
    fill(key, length * kv * dim);
    fill(value, length * kv * dim);
    const int64_t num_blocks = (length + bs - 1) / bs + 3;
    blocks.resize(static_cast<size_t>(num_blocks));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), random);
    const auto tokens = static_cast<size_t>(num_blocks * bs * kv);
    // All bits set is NaN in every type.
    key_cache.assign(tokens * static_cast<size_t>(dim) * SizeOf(type), std::byte{0xff});
    value_cache.assign(tokens * static_cast<size_t>(PaddedHeadDim(dim)) * SizeOf(type), std::byte{0});
    args.key_cache = key_cache.data();
    args.value_cache = value_cache.data();
    args.kv_dtype = type;
    args.block_size = bs;
    args.num_kv_heads = kv;
    args.num_queries_per_kv = g;
    args.head_dim = dim;
    args.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
    args.sliding_window = win;
    args.query = query.data();
    args.query_stride = kv * g * dim;
    args.out_stride = args.query_stride;
    for (int64_t t = 0; t < length; ++t) {
      const int64_t slot = blocks[static_cast<size_t>(t / bs)] * bs + t % bs;
      for (int64_t h = 0; h < kv; ++h) {
        WriteKv(args, key_cache.data(), value_cache.data(), slot, h, key.data() + (t * kv + h) * dim,
                value.data() + (t * kv + h) * dim);
      }
    }
  }

  // All rows, in tasks of `rows_per_task`.
  std::vector<float> Run(const Kernels& kernels, int64_t rows_per_task) {
    std::vector<float> out(query.size(), -1.0f);
    args.out = out.data();
    std::vector<float> scratch(static_cast<size_t>(AttentionScratchFloats(args)),
                               std::numeric_limits<float>::quiet_NaN());
    for (int64_t row = 0; row < length; row += rows_per_task) {
      for (int64_t h = 0; h < kv_heads; ++h) {
        kernels.attention(args, {row, std::min(rows_per_task, length - row), row, blocks.data(), h}, scratch.data());
      }
    }
    return out;
  }

  float Round(float x) const {
    if (dtype == DType::kBFloat16) return BFloat16ToFloat(FloatToBFloat16(x));
    if (dtype == DType::kFloat16) return Float16ToFloat(FloatToFloat16(x));
    return x;
  }

  std::vector<double> Naive() const {
    std::vector<double> out(query.size());
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t h = 0; h < kv_heads * group; ++h) {
        const float* q = query.data() + (t * kv_heads * group + h) * head_dim;
        const int64_t first = window > 0 ? std::max<int64_t>(0, t + 1 - window) : 0;
        std::vector<double> p;
        double total = 0.0;
        for (int64_t s = first; s <= t; ++s) {
          double dot = 0.0;
          for (int64_t d = 0; d < head_dim; ++d) {
            dot +=
                static_cast<double>(q[d]) * Round(key[static_cast<size_t>((s * kv_heads + h / group) * head_dim + d)]);
          }
          double score = dot * static_cast<double>(args.scale);
          if (args.softcap > 0.0f) score = args.softcap * std::tanh(score / args.softcap);
          p.push_back(std::exp(score));
          total += p.back();
        }
        for (int64_t d = 0; d < head_dim; ++d) {
          double sum = 0.0;
          for (int64_t s = first; s <= t; ++s) {
            sum += p[static_cast<size_t>(s - first)] / total *
                   Round(value[static_cast<size_t>((s * kv_heads + h / group) * head_dim + d)]);
          }
          out[static_cast<size_t>((t * kv_heads * group + h) * head_dim + d)] = sum;
        }
      }
    }
    return out;
  }
};

class AttentionTest : public testing::TestWithParam<Isa> {
 protected:
  const Kernels& kernels() const { return KernelsFor(GetParam()); }
  int64_t Int(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  Case RandomCase(int round) {
    const DType dtype = std::array{DType::kFloat32, DType::kBFloat16, DType::kFloat16}[static_cast<size_t>(round % 3)];
    const int64_t dims[] = {8, 16, 24, 40, 64, 80, 128, 160};
    const int64_t window = round % 4 == 0 ? Int(1, 300) : 0;
    Case c(random_, dims[static_cast<size_t>(round) % 8], Int(1, 3), Int(1, 5), 16 * Int(1, 3),
           Int(1, round % 5 == 0 ? 600 : 60), window, dtype);
    if (round % 3 == 1) c.args.softcap = 1.5f;
    return c;
  }
  std::mt19937 random_{11};
};

INSTANTIATE_TEST_SUITE_P(Isas, AttentionTest, testing::ValuesIn(AvailableIsas()),
                         [](const auto& isa) { return std::string(ToString(isa.param)); });

TEST_P(AttentionTest, AgreesWithSoftmaxWrittenOut) {
  for (int round = 0; round < 40; ++round) {
    Case c = RandomCase(round);
    const std::vector<float> out = c.Run(kernels(), 1);
    const std::vector<double> naive = c.Naive();
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], naive[i], 5e-6) << "round " << round << " at " << i;
  }
}

TEST_P(AttentionTest, GivesTheSameBitsHoweverRowsAreGrouped) {
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

TEST_P(AttentionTest, ManyHeadsOnOneKvHeadFitASingleRowTask) {
  Case c(random_, 16, 1, 71, 16, 20, 0, DType::kFloat32);
  const std::vector<float> out = c.Run(kernels(), 1);
  const std::vector<double> naive = c.Naive();
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], naive[i], 5e-6);
}

}  // namespace
}  // namespace vllm
