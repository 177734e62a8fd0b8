#include "engine/model_loader/weights.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/config/errors.h"
#include "engine/model_loader/checkpoint/open_weights.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/model_loader/gguf_builder.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

// Returns a safetensors file with one F32 scalar per name.
std::string Shard(const std::vector<std::string>& names, float value) {
  std::string header = "{";
  std::string data;
  for (const std::string& name : names) {
    if (!data.empty()) header += ',';
    header += '"' + name + R"(":{"dtype":"F32","shape":[],"data_offsets":[)" + std::to_string(data.size()) + ',' +
              std::to_string(data.size() + 4) + "]}";
    char bytes[4];
    std::memcpy(bytes, &value, 4);
    data.append(bytes, 4);
  }
  header += "}";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  return file + header + data;
}

std::unique_ptr<WeightSource> Open(const std::string& directory, LoadFormat format = LoadFormat::kAuto) {
  VllmConfig config;
  config.model.directory = directory;
  config.load.load_format = format;
  return OpenWeights(config);
}

std::string ErrorOf(const std::string& directory) {
  return MessageOf<ModelError>([&] { Open(directory); });
}

float Scalar(const WeightSource& source, const char* name) {
  float value;
  std::memcpy(&value, source.Get(name, {}).data.data(), 4);
  return value;
}

TEST(WeightsTest, ShardsAreReadThroughTheIndex) {
  TempDirectory directory;
  directory.Write("one.safetensors", Shard({"a", "b"}, 1.0f));
  directory.Write("two.safetensors", Shard({"b", "c"}, 2.0f));
  directory.Write(
      "model.safetensors.index.json",
      R"({"metadata":{},"weight_map":{"a":"one.safetensors","b":"two.safetensors","c":"two.safetensors"}})");
  auto source = Open(directory.path());
  EXPECT_EQ(source->Names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(Scalar(*source, "a"), 1.0f);
  EXPECT_EQ(Scalar(*source, "b"), 2.0f);
  EXPECT_THROW(source->Get("d", {}), ModelError);
  EXPECT_EQ(source->TotalBytes(), 16);
}

TEST(WeightsTest, InvalidIndexesAreRejectedWithTheReason) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "weight_map: missing"},
      {R"([])", "weight_map: missing"},
      {R"({"weight_map":[]})", "weight_map: not an object"},
      {R"({"weight_map":{"a":1}})", "weight_map: a: not a file name"},
      {R"({"weight_map":{"a":"../one.safetensors"}})", "not a plain file name (../one.safetensors)"},
      {R"({"weight_map":{"a":"/etc/passwd"}})", "not a plain file name"},
      {R"({"weight_map":{"a":".."}})", "not a plain file name"},
      {R"({"weight_map":{"a":""}})", "not a plain file name"},
      {R"({"weight_map":{"a":"one.safetensors\u0000"}})", R"(not a plain file name (one.safetensors\x00))"},
      {R"({"weight_map":{"a":"gone.safetensors"}})", "gone.safetensors: "},
      {R"({"weight_map":{"z":"one.safetensors"}})", "weight_map: z: not in the listed file (one.safetensors)"},
  };
  for (auto [index, message] : cases) {
    TempDirectory directory;
    directory.Write("one.safetensors", Shard({"a"}, 1.0f));
    directory.Write("model.safetensors.index.json", index);
    EXPECT_NE(ErrorOf(directory.path()).find(message), std::string::npos)
        << index << " -> " << ErrorOf(directory.path());
  }
}

TEST(WeightsTest, AnIndexTruncatedAtAnyByteIsRejected) {
  TempDirectory directory;
  directory.Write("one.safetensors", Shard({"a"}, 1.0f));
  const std::string original = R"({"weight_map":{"a":"one.safetensors"}})";
  for (size_t size = 0; size < original.size(); ++size) {
    directory.Write("model.safetensors.index.json", original.substr(0, size));
    EXPECT_THROW(Open(directory.path()), ModelError) << size;
  }
}

TEST(WeightsTest, PickleOnlyDirectoriesAreRejectedWithTheReason) {
  TempDirectory directory;
  EXPECT_NE(ErrorOf(directory.path()).find("neither model.safetensors nor"), std::string::npos);
  directory.Write("pytorch_model.bin", "PK");
  EXPECT_NE(ErrorOf(directory.path()).find("can run code when they are opened"), std::string::npos);
  EXPECT_NE(ErrorOf(directory.path()).find("(found pytorch_model.bin)"), std::string::npos);
}

TEST(WeightsTest, ADirectoryNamedLikeTheWeightFileIsRejected) {
  TempDirectory directory;
  std::filesystem::create_directory(directory.path() + "/model.safetensors");
  EXPECT_NE(ErrorOf(directory.path()).find("not a regular file"), std::string::npos);
}

// Returns the resident bytes of file mappings and shared memory in this process.
int64_t ResidentFileBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0, shared = 0;
  statm >> total >> resident >> shared;
  return shared * sysconf(_SC_PAGESIZE);
}

// Checks that DropPages frees the memory of a tensor whose bytes are all 7, and that the tensor can be read again.
void ExpectPagesAreDropped(const WeightSource& source, const char* name, std::span<const int64_t> shape) {
  const int64_t before = ResidentFileBytes();
  const TensorView view = source.Get(name, shape);
  const auto size = static_cast<int64_t>(view.data.size());
  const auto sum = [&] {
    int64_t bytes = 0;
    for (const std::byte byte : view.data) bytes += std::to_integer<int64_t>(byte);
    return bytes;
  };
  EXPECT_EQ(sum(), 7 * size);
  EXPECT_GT(ResidentFileBytes(), before + size / 2);
  source.DropPages();
  EXPECT_LT(ResidentFileBytes(), before + size / 2);
  EXPECT_EQ(sum(), 7 * size);
}

constexpr int64_t kManyFloats = 1 << 22;

TEST(WeightsTest, DroppedPagesCanBeReadAgain) {
  const std::string size = std::to_string(kManyFloats), bytes = std::to_string(4 * kManyFloats);
  const std::string header = R"({"x":{"dtype":"F32","shape":[)" + size + R"(],"data_offsets":[0,)" + bytes + "]}}";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  TempDirectory directory;
  directory.Write("one.safetensors", file + header + std::string(4 * kManyFloats, '\7'));
  directory.Write("model.safetensors.index.json", R"({"weight_map":{"x":"one.safetensors"}})");
  ExpectPagesAreDropped(*Open(directory.path()), "x", std::array{kManyFloats});
  std::filesystem::rename(directory.path() + "/one.safetensors", directory.path() + "/model.safetensors");
  ExpectPagesAreDropped(*Open(directory.path()), "x", std::array{kManyFloats});
}

TEST(WeightsTest, DroppedPagesOfGgufFilesCanBeReadAgain) {
  TempDirectory directory;
  GgufBuilder file = TinyGguf();
  file.Tensor("output.weight", {1024, kManyFloats / 1024}, 0, std::string(4 * kManyFloats, '\7'));
  VllmConfig config;
  config.model = LoadGgufConfig(directory.Write("m.gguf", file.Build()));
  ExpectPagesAreDropped(*OpenWeights(config), "lm_head.weight", std::array<int64_t, 2>{kManyFloats / 1024, 1024});
}

TEST(WeightsTest, DummyValuesDependOnlyOnTheName) {
  auto one = Open("", LoadFormat::kDummy);
  auto two = Open("", LoadFormat::kDummy);
  std::vector<int64_t> small = {8, 8}, large = {3000, 4000};
  two->Get("other", large);  // so that `two` has another order of requests and another mapping
  TensorView a = one->Get("model.layers.0.mlp.up_proj.weight", small);
  TensorView b = two->Get("model.layers.0.mlp.up_proj.weight", small);
  TensorView c = one->Get("model.layers.1.mlp.up_proj.weight", small);
  EXPECT_TRUE(std::ranges::equal(a.data, b.data));
  EXPECT_FALSE(std::ranges::equal(a.data, c.data));
  TensorView big = one->Get("big", large);
  ASSERT_EQ(big.data.size(), 48000000u);
  double sum = 0.0;
  for (int64_t i = 0; i < big.num_elements(); ++i) {
    float x;
    std::memcpy(&x, big.data.data() + 4 * i, 4);
    ASSERT_TRUE(std::abs(x) <= 0.02f);
    sum += static_cast<double>(x);
  }
  EXPECT_NEAR(sum / static_cast<double>(big.num_elements()), 0.0, 1e-4);
}

TEST(WeightsTest, DummyNormsAreOneAndATiedHeadIsAbsent) {
  VllmConfig config;
  config.load.load_format = LoadFormat::kDummy;
  config.model.dtype = kernels::DType::kBFloat16;
  config.model.tie_word_embeddings = true;
  auto source = OpenWeights(config);
  std::vector<int64_t> shape = {5};
  TensorView norm = source->Get("model.norm.weight", shape);
  for (size_t i = 0; i < 5; ++i) {
    uint16_t bits;
    std::memcpy(&bits, norm.data.data() + 2 * i, 2);
    EXPECT_EQ(kernels::BFloat16ToFloat(bits), 1.0f);
  }
  EXPECT_FALSE(source->Contains("lm_head.weight"));
  EXPECT_TRUE(source->Contains("model.embed_tokens.weight"));
  std::vector<int64_t> huge = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THROW(source->Get("x", huge), ModelError);
}

TEST(WeightsTest, TrainedModelsOpenWithTheShapesOfTheirConfig) {
  const std::string models = std::string(VLLMCLI_REALDATA) + "/models/";
  if (!std::filesystem::exists(models)) GTEST_SKIP() << "reference data not found: " << models;
  for (const char* name : {"TinyStories-656K", "stories260K/hf-f32", "stories260K/hf-f16", "stories260K/hf-bf16",
                           "stories260K/hf-bf16-sharded", "babyllama-tok105/hf-f32", "babyllama-tok105/hf-bf16"}) {
    VllmConfig config;
    config.model = LoadModelConfig(models + name);
    auto source = OpenWeights(config);
    std::vector<int64_t> shape = {config.model.vocab_size, config.model.hidden_size};
    TensorView embedding = source->Get("model.embed_tokens.weight", shape);
    EXPECT_EQ(embedding.dtype(), config.model.checkpoint_dtype) << name;
    EXPECT_EQ(config.model.num_key_value_heads, 4) << name;
    EXPECT_EQ(config.model.eos_token_ids[0], 2) << name;
  }
}

}  // namespace
}  // namespace vllm
