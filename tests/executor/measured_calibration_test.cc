// Loads test models with -q int4 and a calibration.
#include "engine/executor/measured_calibration.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/executor/make_executor.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/one_request.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using testing_support::OneRequest;

class MeasuredCalibrationTest : public testing::Test {
 protected:
  static VllmConfig Config(const std::string& model, int64_t ranks = 1, int64_t threads = 1) {
    VllmConfig config;
    config.model = LoadModelConfig(std::string(VLLMCLI_TEST_DATA) + "/models/" + model);
    config.model.dtype = config.model.checkpoint_dtype;
    config.model.quantization.method = QuantizationMethod::kInt4;
    config.model.max_model_len = 64;
    config.parallel.tensor_parallel_size = ranks;
    config.parallel.threads_per_rank = threads;
    return config;
  }
  static std::vector<std::vector<int32_t>> Chunks(int32_t step, const VllmConfig& config) {
    std::vector<std::vector<int32_t>> chunks(6);
    int32_t next = 1;
    for (std::vector<int32_t>& chunk : chunks) {
      for (int i = 0; i < 20; ++i) {
        next = static_cast<int32_t>((next + step) % config.model.vocab_size);
        chunk.push_back(next);
      }
    }
    return chunks;
  }
  struct Result {
    std::vector<float> logprobs;
    LoadReport report;
    bool has_read = false;
  };
  static Result Run(const VllmConfig& config, int32_t step = 7) {
    const auto progress = std::make_shared<CalibrationProgress>();
    MeasuredCalibration calibration(config, TextOfChunks(Chunks(step, config)), progress);
    OneRequest engine(config, [&](const VllmConfig& given) { return MakeCalibratedExecutor(given, calibration); });
    engine.Greedy({1, 5, 9, 2, 33, 7}, 4, 4, 5, 5);
    Result result;
    result.logprobs.assign(engine.output_logprobs.logprobs.begin(), engine.output_logprobs.logprobs.end());
    result.logprobs.insert(result.logprobs.end(), engine.prompt_output.logprobs.begin(),
                           engine.prompt_output.logprobs.end());
    result.report = engine.load_report();
    result.has_read = progress->num_layers_done > 0;
    return result;
  }

  TempDirectory temp_;
};

TEST_F(MeasuredCalibrationTest, OneAndTwoThreadsGiveTheSameWeights) {
  EXPECT_EQ(Run(Config("llama", 1, 1)).logprobs, Run(Config("llama", 1, 2)).logprobs);
}

TEST_F(MeasuredCalibrationTest, TheTextChangesTheWeights) {
  const VllmConfig config = Config("llama");
  EXPECT_NE(Run(config, 7).logprobs, Run(config, 11).logprobs);
}

TEST_F(MeasuredCalibrationTest, TheDescriptionChangesWithTheTokensAndTheirChunks) {
  const VllmConfig config = Config("llama");
  const auto description = [&](std::vector<std::vector<int32_t>> chunks) {
    return MeasuredCalibration(config, TextOfChunks(std::move(chunks))).description();
  };
  EXPECT_EQ(description({{1, 2}, {3}}), description({{1, 2}, {3}}));
  EXPECT_NE(description({{1, 2}, {3}}), description({{1, 2}, {4}}));
  EXPECT_NE(description({{1, 2}, {3}}), description({{1}, {2, 3}}));
  EXPECT_NE(description({{12}}), description({{1, 2}}));
}

TEST_F(MeasuredCalibrationTest, ASecondStartMapsTheSameWeightsAndReadsNoText) {
  VllmConfig config = Config("llama", 1, 2);
  config.load.packed_cache_directory = temp_.path() + "/packed";
  config.load.packed_cache_bytes = int64_t{1} << 30;
  config.load.packed_cache_min_bytes = 0;
  const Result first = Run(config), second = Run(config);
  EXPECT_TRUE(first.has_read);
  EXPECT_GT(first.report.written_bytes, 0);
  EXPECT_FALSE(second.has_read);
  EXPECT_GT(second.report.mapped_bytes, 0);
  EXPECT_EQ(first.logprobs, second.logprobs);
  const Result other = Run(config, 11);
  EXPECT_TRUE(other.has_read) << "another text has another file";
  config.load.packed_cache_directory.clear();
  EXPECT_EQ(Run(config).logprobs, first.logprobs);
}

TEST_F(MeasuredCalibrationTest, TwoRanksReadTheTextOnce) { EXPECT_TRUE(Run(Config("llama", 2, 1)).has_read); }

TEST_F(MeasuredCalibrationTest, FamiliesWithExpertsTransposedWeightsLatentAttentionAndStatesLoad) {
  for (const char* model : {"mixtral", "gpt2", "deepseek_v2", "qwen3_next"}) {
    const std::string path = std::string(VLLMCLI_TEST_DATA) + "/models/" + model;
    ASSERT_TRUE(std::filesystem::exists(path)) << path;
    const Result result = Run(Config(model));
    EXPECT_TRUE(result.has_read) << model;
    EXPECT_FALSE(result.logprobs.empty()) << model;
  }
}

TEST_F(MeasuredCalibrationTest, EveryExpertIsCalibratedAndDoesNotDependOnThreads) {
  const VllmConfig config = Config("mixtral", 1, 1);
  EXPECT_EQ(Run(config).logprobs, Run(Config("mixtral", 1, 2)).logprobs);
  MeasuredCalibration calibration(config, TextOfChunks(Chunks(7, config)));
  for (int64_t expert = 0; expert < config.model.num_experts; ++expert) {
    const std::string name = "model.layers.0.block_sparse_moe.experts." + std::to_string(expert);
    for (const char* matrix : {".w1", ".w2", ".w3"}) {
      EXPECT_NE(calibration.Weights().Find(name + matrix, 0).matrix, nullptr) << name << matrix;
    }
  }
  EXPECT_EQ(calibration.Weights().Find("model.layers.0.block_sparse_moe.gate", 0).matrix, nullptr);
}

TEST_F(MeasuredCalibrationTest, AFailureReachesEveryCaller) {
  VllmConfig config = Config("llama");
  config.model.directory = temp_.path();
  MeasuredCalibration calibration(config, TextOfChunks({{1, 2, 3}}));
  EXPECT_THROW(calibration.Weights(), ModelError);
  EXPECT_THROW(calibration.Weights(), ModelError);
}

}  // namespace
}  // namespace vllm
