// Tests that engines share the memory of their matrices, with the same results for every test model, bit for bit.
#include "engine/model_loader/packed_cache/matrix_store.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/one_request.h"
#include "tests/support/temp_directory.h"
#include "tests/support/test_models.h"

namespace vllm {
namespace {

using testing_support::NumMappings;
using testing_support::OneRequest;

VllmConfig ConfigOf(const std::string& path, int64_t ranks = 1) {
  VllmConfig config;
  config.model = path.ends_with(".gguf") ? LoadGgufConfig(path) : LoadModelConfig(path);
  config.model.dtype = config.model.checkpoint_dtype;
  config.model.max_model_len = 64;
  config.parallel.tensor_parallel_size = ranks;
  config.parallel.threads_per_rank = 1;
  return config;
}

std::string LlamaPath() { return std::string(VLLMCLI_TEST_DATA) + "/models/llama"; }

std::pair<std::vector<int32_t>, std::vector<float>> Answer(OneRequest& engine) {
  std::vector<int32_t> tokens = engine.Greedy({1, 5, 9, 2, 33, 7}, 8, 4, 5, 5);
  return {std::move(tokens), {engine.output_logprobs.logprobs.begin(), engine.output_logprobs.logprobs.end()}};
}

TEST(SharedMatricesTest, ResultsAreTheSameForEveryTestModel) {
  for (const std::string& path : testing_support::TestModels()) {
    VllmConfig config = ConfigOf(path);
    const auto expected = [&] {
      OneRequest alone(config);
      return Answer(alone);
    }();
    config.load.matrices = std::make_shared<MatrixStore>(1);
    auto first = std::make_unique<OneRequest>(config);
    EXPECT_TRUE(config.load.matrices->is_complete());
    OneRequest second(config);
    EXPECT_EQ(Answer(*first), expected) << path;
    EXPECT_EQ(Answer(second), expected) << path;
    // The other engines keep the memory.
    first = nullptr;
    EXPECT_EQ(Answer(second), expected) << path;
  }
}

TEST(SharedMatricesTest, RanksShareWithOtherEngines) {
  VllmConfig config = ConfigOf(LlamaPath(), 2);
  config.model.quantization.method = QuantizationMethod::kInt8;
  OneRequest alone(config);
  config.load.matrices = std::make_shared<MatrixStore>(2);
  OneRequest first(config);
  OneRequest second(config);
  EXPECT_EQ(Answer(second), Answer(alone));
  EXPECT_EQ(Answer(first), Answer(alone));
}

TEST(SharedMatricesTest, OnlyTheFirstEngineMapsMemoryForWeights) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // the sanitizers replace mmap
#endif
  for (const QuantizationMethod method : {QuantizationMethod::kNone, QuantizationMethod::kInt4}) {
    VllmConfig config = ConfigOf(LlamaPath());
    config.model.quantization.method = method;
    config.load.matrices = std::make_shared<MatrixStore>(1);
    const uint64_t at_start = NumMappings();
    const OneRequest first(config);
    const uint64_t after_first = NumMappings();
    const OneRequest second(config);
    const uint64_t after_second = NumMappings();
    // A layer has at least four matrices.
    EXPECT_LE(after_second - after_first + static_cast<uint64_t>(4 * config.model.num_hidden_layers),
              after_first - at_start);
  }
}

TEST(SharedMatricesTest, AllEnginesReportHowTheFirstOneLoadedTheWeights) {
  const TempDirectory directory;
  VllmConfig config = ConfigOf(LlamaPath());
  config.load.packed_cache_directory = directory.path() + "/packed";
  config.load.packed_cache_bytes = int64_t{1} << 30;
  config.load.packed_cache_min_bytes = 0;
  config.load.matrices = std::make_shared<MatrixStore>(1);
  OneRequest first(config);
  OneRequest second(config);
  EXPECT_GT(first.load_report().written_bytes, 0);
  EXPECT_EQ(second.load_report().written_bytes, first.load_report().written_bytes);
  // Engines may also share what the first one mapped from the cache.
  config.load.matrices = std::make_shared<MatrixStore>(1);
  OneRequest third(config);
  OneRequest fourth(config);
  EXPECT_EQ(third.load_report().mapped_bytes, first.load_report().written_bytes);
  EXPECT_EQ(fourth.load_report().mapped_bytes, first.load_report().written_bytes);
  EXPECT_EQ(Answer(fourth), Answer(first));
}

TEST(SharedMatricesTest, RanksShareTheMemoryOfSharedMatricesOnly) {
  MatrixStore store(2);
  const auto memories = std::array{store.MemoryOf(0), store.MemoryOf(1)};
  const auto of = [&](int rank, const std::string& name) {
    return memories[static_cast<size_t>(rank)]->SharedBuffers(name).buffers({4096})[0].data();
  };
  EXPECT_EQ(of(0, "a"), of(1, "a"));
  EXPECT_NE(of(0, "a"), of(0, "a"));  // the second and the third matrix of that name
  const auto own = [&](int rank) { return memories[static_cast<size_t>(rank)]->Buffers("b")({4096})[0].data(); };
  EXPECT_NE(own(0), own(1));
}

TEST(SharedMatricesTest, EachPanelIsClaimedOnce) {
  MatrixStore store(2);
  const auto first = store.MemoryOf(0), second = store.MemoryOf(1);
  Claims* const a = first->SharedBuffers("a").claims;
  EXPECT_TRUE(a->Claim(3));
  EXPECT_FALSE(second->SharedBuffers("a").claims->Claim(3));
  EXPECT_TRUE(second->SharedBuffers("a").claims->Claim(3));  // the second matrix of that name
  EXPECT_TRUE(a->Claim(0));
  EXPECT_FALSE(a->Claim(0));
}

TEST(SharedMatricesTest, MatricesOfOneNameAreReturnedInTheirOrder) {
  MatrixStore store(1);
  const auto first = store.MemoryOf(0);
  EXPECT_FALSE(first->Contains("a", {4096}));
  std::vector<void*> data;
  std::vector<kernels::AlignedBuffer> kept;
  for (const size_t size : {size_t{4096}, size_t{8192}}) {
    std::vector<kernels::AlignedBuffer> buffers = first->Buffers("a")({size, 100});
    ASSERT_EQ(buffers.size(), 2u);
    EXPECT_FALSE(buffers[0].is_filled());
    for (kernels::AlignedBuffer& buffer : buffers) {
      data.push_back(buffer.data());
      kept.push_back(std::move(buffer));
    }
  }
  store.Complete([](int64_t, const std::function<void(int64_t)>&) {});
  const auto second = store.MemoryOf(0);
  EXPECT_FALSE(second->Contains("b", {4096, 100}));
  EXPECT_FALSE(second->Contains("a", {4096}));
  EXPECT_FALSE(second->Contains("a", {8192, 100}));
  ASSERT_TRUE(second->Contains("a", {4096, 100}));
  const auto matrix = second->Buffers("a")({4096, 100});
  EXPECT_EQ(matrix[0].data(), data[0]);
  EXPECT_EQ(matrix[1].data(), data[1]);
  EXPECT_TRUE(matrix[0].is_filled());
  ASSERT_TRUE(second->Contains("a", {8192, 100}));
  EXPECT_EQ(second->Buffers("a")({8192, 100})[0].data(), data[2]);
  EXPECT_FALSE(second->Contains("a", {8192, 100}));
  // Every engine starts with the first matrix.
  EXPECT_TRUE(store.MemoryOf(0)->Contains("a", {4096, 100}));
}

}  // namespace
}  // namespace vllm
