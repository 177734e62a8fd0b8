#include "app/cli/engine_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/cli/command_line.h"

namespace vllm {
namespace {

KVDType CacheTypeOf(const ModelConfig& model, std::vector<std::string> flags) {
  flags.insert(flags.begin(), "run");
  return MakeVllmConfig(ParseCommandLine(std::move(flags), Command::kRun).settings, model).KVCacheDType();
}

// A GGUF file of codes, whose plain numbers are float16.
ModelConfig Blocks() {
  ModelConfig model;
  model.checkpoint_dtype = DType::kFloat16;
  model.has_block_weights = true;
  return model;
}

TEST(EngineOptionsTest, TheKVCacheIsOfTheTypeThatWasAskedFor) {
  EXPECT_EQ(CacheTypeOf(Blocks(), {"--dtype", "float16"}), KVDType::kFloat16);
  EXPECT_EQ(CacheTypeOf(Blocks(), {"--dtype", "float32"}), KVDType::kFloat32);
  EXPECT_EQ(CacheTypeOf(Blocks(), {"--kv-cache-dtype", "float16"}), KVDType::kFloat16);
  EXPECT_EQ(CacheTypeOf(Blocks(), {"--dtype", "float16", "--kv-cache-dtype", "int8"}), KVDType::kInt8);
}

TEST(EngineOptionsTest, UnaskedTheKVCacheBesideCodesIsBFloat16) {
  EXPECT_EQ(CacheTypeOf(Blocks(), {}), KVDType::kBFloat16);
  EXPECT_EQ(CacheTypeOf(Blocks(), {"--dtype", "auto", "--kv-cache-dtype", "auto"}), KVDType::kBFloat16);
  ModelConfig plain = Blocks();
  plain.has_block_weights = false;
  EXPECT_EQ(CacheTypeOf(plain, {}), KVDType::kFloat16);
  EXPECT_EQ(CacheTypeOf(plain, {"--quantization", "int8"}), KVDType::kBFloat16);
  EXPECT_EQ(CacheTypeOf(plain, {"--quantization", "int8", "--dtype", "float16"}), KVDType::kFloat16);
}

}  // namespace
}  // namespace vllm
