#include "app/model/calibration/calibration_text.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "app/model/calibration/written_text.h"
#include "engine/config/errors.h"
#include "engine/model_loader/hf/hf_config.h"

namespace vllm::app {
namespace {

using Chunks = std::vector<std::vector<int32_t>>;

std::vector<int32_t> Tokens(size_t count) {
  std::vector<int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(CalibrationTextTest, AShortTextIsDividedIntoAllItsCompleteChunks) {
  EXPECT_EQ(CalibrationChunks(Tokens(8), 3, 10), (Chunks{{0, 1, 2}, {3, 4, 5}}));
}

TEST(CalibrationTextTest, ALongTextGivesChunksAtEqualDistances) {
  EXPECT_EQ(CalibrationChunks(Tokens(20), 2, 3), (Chunks{{0, 1}, {6, 7}, {12, 13}}));
}

TEST(CalibrationTextTest, ATextShorterThanAChunkGivesNone) { EXPECT_EQ(CalibrationChunks(Tokens(2), 3, 10), Chunks{}); }

class WrittenTextTest : public testing::Test {
 protected:
  static VllmConfig Config(int64_t threads) {
    VllmConfig config;
    config.model = LoadModelConfig(std::string(VLLMCLI_TEST_DATA) + "/models/llama");
    config.model.dtype = config.model.checkpoint_dtype;
    config.model.quantization.method = QuantizationMethod::kInt4;
    config.model.max_model_len = 64;
    config.model.bos_token_id = 3;
    config.parallel.threads_per_rank = threads;
    config.Finalize();
    return config;
  }
  static CalibrationText Text(const VllmConfig& config, int64_t num_chunks, int64_t length,
                              std::shared_ptr<CalibrationProgress> progress = std::make_shared<CalibrationProgress>()) {
    return WrittenText(config, num_chunks, length, std::move(progress));
  }
};

TEST_F(WrittenTextTest, TheTextBeginsWithBosOrElseEos) {
  ModelConfig model;
  EXPECT_EQ(FirstToken(model), std::nullopt);
  model.eos_token_ids = {7, 8};
  EXPECT_EQ(FirstToken(model), 7);
  model.bos_token_id = 1;
  EXPECT_EQ(FirstToken(model), 1);
}

TEST_F(WrittenTextTest, ChunksHaveTheirLengthAndDiffer) {
  const auto progress = std::make_shared<CalibrationProgress>();
  // More chunks than run at the same time.
  const Chunks chunks = Text(Config(1), 70, 12, progress).chunks();
  ASSERT_EQ(chunks.size(), 70u);
  for (const std::vector<int32_t>& chunk : chunks) {
    EXPECT_EQ(chunk.size(), 12u);
    EXPECT_EQ(chunk.front(), 3);
  }
  EXPECT_NE(chunks[0], chunks[1]);
  EXPECT_EQ(progress->num_tokens, 70 * 11);
  EXPECT_EQ(progress->num_tokens_written, 70 * 11);
}

TEST_F(WrittenTextTest, TheTokensDependOnNeitherThreadsNorTheOtherChunks) {
  const Chunks one = Text(Config(1), 9, 20).chunks();
  EXPECT_EQ(Text(Config(2), 9, 20).chunks(), one);
  const Chunks fewer = Text(Config(1), 3, 20).chunks();
  EXPECT_EQ(fewer, Chunks(one.begin(), one.begin() + 3));
}

TEST_F(WrittenTextTest, TheDescriptionTellsTextsApart) {
  VllmConfig config = Config(1);
  const std::string description = Text(config, 9, 20).description;
  EXPECT_EQ(Text(Config(2), 9, 20).description, description);
  EXPECT_NE(Text(config, 8, 20).description, description);
  EXPECT_NE(Text(config, 9, 21).description, description);
  config.model.bos_token_id = 4;
  EXPECT_NE(Text(config, 9, 20).description, description);
}

TEST_F(WrittenTextTest, AModelThatDoesNotLoadIsAnError) {
  VllmConfig config = Config(1);
  config.model.directory = "/nonexistent";
  EXPECT_THROW(Text(config, 2, 8).chunks(), ModelError);
}

}  // namespace
}  // namespace vllm::app
