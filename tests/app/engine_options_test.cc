#include "app/cli/engine_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/cli/command_line.h"

namespace vllm {
namespace {

KvDType CacheTypeOf(const ModelConfig& model, std::vector<std::string> flags) {
  flags.insert(flags.begin(), "run");
  return MakeVllmConfig(ParseCommandLine(std::move(flags), Command::kRun).settings, model).KvCacheDType();
}

// A GGUF file of codes, whose plain numbers are float16.
ModelConfig Blocks() {
  ModelConfig model;
  model.checkpoint_dtype = DType::kFloat16;
  model.has_block_weights = true;
  return model;
}

TEST(EngineOptionsTest, TheKvCacheIsOfTheTypeThatWasAskedFor) {
  EXPECT_EQ(CacheTypeOf(Blocks(), {"--dtype", "float16"}), KvDType::kFloat16);
  EXPECT_EQ(CacheTypeOf(Blocks(), {"--dtype", "float32"}), KvDType::kFloat32);
  EXPECT_EQ(CacheTypeOf(Blocks(), {"--kv-cache-dtype", "float16"}), KvDType::kFloat16);
  EXPECT_EQ(CacheTypeOf(Blocks(), {"--dtype", "float16", "--kv-cache-dtype", "int8"}), KvDType::kInt8);
}

TEST(EngineOptionsTest, UnaskedTheKvCacheBesideCodesIsBFloat16) {
  EXPECT_EQ(CacheTypeOf(Blocks(), {}), KvDType::kBFloat16);
  EXPECT_EQ(CacheTypeOf(Blocks(), {"--dtype", "auto", "--kv-cache-dtype", "auto"}), KvDType::kBFloat16);
  ModelConfig plain = Blocks();
  plain.has_block_weights = false;
  EXPECT_EQ(CacheTypeOf(plain, {}), KvDType::kFloat16);
  EXPECT_EQ(CacheTypeOf(plain, {"--quantization", "int8"}), KvDType::kBFloat16);
  EXPECT_EQ(CacheTypeOf(plain, {"--quantization", "int8", "--dtype", "float16"}), KvDType::kFloat16);
}

}  // namespace
}  // namespace vllm
