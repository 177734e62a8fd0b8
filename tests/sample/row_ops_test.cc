#include "engine/sample/row_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/sample/sampler.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/kernels.h"

namespace vllm {
namespace {

TEST(RowOpsTest, WeightHasASmallRelativeErrorAndIsZeroFarBelowTheMaximum) {
  EXPECT_EQ(Weight(3.5f, 3.5f, 0.7f), 1.0f);
  EXPECT_EQ(Weight(-std::numeric_limits<float>::infinity(), 0.0f, 1.0f), 0.0f);
  EXPECT_EQ(Weight(-88.0f, 0.0f, 1.0f), 0.0f);
  for (float y = 0.0f; y > -87.0f; y -= 0.00317f) {
    double exact = std::exp(static_cast<double>(y));
    EXPECT_NEAR(static_cast<double>(Weight(y, 0.0f, 1.0f)) / exact, 1.0, 2.4e-7) << y;
  }
}

// Returns the row kernels of every instruction set that this machine supports.
std::vector<const kernels::RowKernels*> AllKernels() {
  std::vector<const kernels::RowKernels*> all;
  for (const kernels::Isa isa : kernels::AvailableIsas()) all.push_back(kernels::KernelsFor(isa).rows);
  return all;
}

TEST(RowOpsTest, KernelsMatchTheScalarCodeBitForBit) {
  for (const kernels::RowKernels* kernels : AllKernels()) {
    std::mt19937 random(4);
    std::normal_distribution<float> normal(0.0f, 20.0f);
    for (size_t size : {1, 63, 64, 65, 200, 1000}) {
      std::vector<float> row(size);
      for (float& x : row) x = normal(random);
      float max = *std::max_element(row.begin(), row.end());
      std::vector<double> sums(NumRowBlocks(size));
      std::vector<float> maxima(NumRowBlocks(size));
      BlockWeightSums(*kernels, row, max, 0.9f, sums);
      EXPECT_TRUE(BlockMaxima(*kernels, row, maxima));
      for (size_t b = 0; b < sums.size(); ++b) {
        double lanes[8] = {};
        float block_max = -std::numeric_limits<float>::infinity();
        for (size_t i = 0; i < kernels::kRowBlock; ++i) {
          size_t index = b * kernels::kRowBlock + i;
          if (index >= size) break;
          lanes[i % 8] += static_cast<double>(Weight(row[index], max, 0.9f));
          block_max = std::max(block_max, row[index]);
        }
        EXPECT_EQ(sums[b],
                  ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7])));
        EXPECT_EQ(maxima[b], block_max);
      }
      EXPECT_EQ(CountAtLeast(*kernels, row, 0.0f),
                std::count_if(row.begin(), row.end(), [](float x) { return x >= 0.0f; }));
      EXPECT_EQ(CountAtLeast(*kernels, row, -std::numeric_limits<float>::infinity()), static_cast<int64_t>(size));
    }
  }
}

TEST(RowOpsTest, NaNAndPositiveInfinityAreFoundAtAnyIndex) {
  for (const kernels::RowKernels* kernels : AllKernels()) {
    for (float bad : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity()}) {
      for (size_t index = 0; index < 150; ++index) {
        std::vector<float> row(150, -std::numeric_limits<float>::infinity());
        std::vector<float> maxima(NumRowBlocks(150));
        EXPECT_TRUE(BlockMaxima(*kernels, row, maxima));
        row[index] = bad;
        EXPECT_FALSE(BlockMaxima(*kernels, row, maxima)) << index;
      }
    }
  }
}

// The sampler must use the kernels that it was constructed with, not the best ones for the machine.
TEST(RowOpsTest, SamplerUsesTheGivenKernels) {
  static int num_calls = 0;
  static const kernels::RowKernels* real = kernels::KernelsFor(kernels::Isa::kGeneric).rows;
  kernels::RowKernels rows = *real;
  rows.block_maxima = [](const float* row, size_t num_blocks, float* block_max) {
    ++num_calls;
    return real->block_maxima(row, num_blocks, block_max);
  };
  kernels::Kernels kernels = kernels::KernelsFor(kernels::Isa::kGeneric);
  kernels.rows = &rows;
  std::vector<float> logits(100, 0.0f);
  logits[7] = 1.0f;
  SamplingParams params;
  params.temperature = 0.0;
  std::string error;
  Sampler sampler(100, kernels);
  EXPECT_EQ(sampler.Sample({logits, &params, {}, {}}, nullptr, error), 7);
  EXPECT_GT(num_calls, 0);
}

}  // namespace
}  // namespace vllm
