#include "app/cli/engine_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/cli/command_line.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

kernels::KVDType CacheTypeOf(const ModelConfig& model, std::vector<std::string> flags) {
  flags.insert(flags.begin(), "run");
  return MakeVllmConfig(ParseCommandLine(std::move(flags), Command::kRun).settings, model).KVCacheDType();
}

// Returns the configuration of a GGUF model with block-quantized weights, whose other weights are float16.
ModelConfig BlockModel() {
  ModelConfig model;
  model.checkpoint_dtype = kernels::DType::kFloat16;
  model.has_block_weights = true;
  return model;
}

TEST(EngineOptionsTest, TheKVCacheHasTheRequestedType) {
  EXPECT_EQ(CacheTypeOf(BlockModel(), {"--dtype", "float16"}), kernels::KVDType::kFloat16);
  EXPECT_EQ(CacheTypeOf(BlockModel(), {"--dtype", "float32"}), kernels::KVDType::kFloat32);
  EXPECT_EQ(CacheTypeOf(BlockModel(), {"--kv-cache-dtype", "float16"}), kernels::KVDType::kFloat16);
  EXPECT_EQ(CacheTypeOf(BlockModel(), {"--dtype", "float16", "--kv-cache-dtype", "int8"}), kernels::KVDType::kInt8);
}

TEST(EngineOptionsTest, WithQuantizedWeightsTheKVCacheDefaultsToBFloat16) {
  EXPECT_EQ(CacheTypeOf(BlockModel(), {}), kernels::KVDType::kBFloat16);
  EXPECT_EQ(CacheTypeOf(BlockModel(), {"--dtype", "auto", "--kv-cache-dtype", "auto"}), kernels::KVDType::kBFloat16);
  ModelConfig unquantized = BlockModel();
  unquantized.has_block_weights = false;
  EXPECT_EQ(CacheTypeOf(unquantized, {}), kernels::KVDType::kFloat16);
  EXPECT_EQ(CacheTypeOf(unquantized, {"--quantization", "int8"}), kernels::KVDType::kBFloat16);
  EXPECT_EQ(CacheTypeOf(unquantized, {"--quantization", "int8", "--dtype", "float16"}), kernels::KVDType::kFloat16);
}

TEST(EngineOptionsTest, TraceOfSeveralEnginesIsRejected) {
  const auto parse = [](std::vector<std::string> flags) {
    return MakeVllmConfig(ParseCommandLine(std::move(flags), Command::kRun).settings, BlockModel());
  };
  EXPECT_EQ(parse({"run", "-dp", "1", "--trace", "file"}).parallel.data_parallel_size, 1);
  EXPECT_EQ(parse({"run", "-dp", "2"}).parallel.data_parallel_size, 2);
  try {
    parse({"run", "-dp", "2", "--trace", "file"});
    ADD_FAILURE() << "no exception";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "--trace: cannot record 2 engines, because a trace is that of one scheduler; use --data-parallel-size 1");
  }
  EXPECT_THROW(parse({"run", "-dp", "0"}), ConfigError);
}

}  // namespace
}  // namespace vllm::app
