// Tests that damaged checkpoints of encoders are rejected at load with a message that names the tensor, on the models
// of tests/data/pooling whose layers have tensors that no other family has.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/config/vllm_config.h"
#include "engine/executor/make_executor.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/gguf/format/file.h"
#include "engine/model_loader/hf/hf_config.h"
#include "engine/model_loader/hf/safetensors.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

std::string Source(const std::string& name) { return std::string(VLLMCLI_TEST_DATA) + "/pooling/" + name; }

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the message of the ModelError that loading throws, or "" if it throws nothing.
std::string LoadError(const ModelConfig& model, int64_t ranks = 1) {
  VllmConfig config;
  config.model = model;
  config.parallel.tensor_parallel_size = ranks;
  config.parallel.threads_per_rank = 1;
  config.Finalize();
  return MessageOf<ModelError>([&] { MakeExecutor(config); });
}

class EncoderLoadTest : public testing::TestWithParam<std::string> {
 protected:
  // Loads the model with these bytes as its weights.
  std::string ErrorOf(const std::string& weights) const {
    const TempDirectory directory;
    std::filesystem::copy(Source(GetParam()) + "/config.json", directory.path());
    directory.Write("model.safetensors", weights);
    return LoadError(LoadModelConfig(directory.path()));
  }
  // Returns the weights with another text in the header.
  std::string Replaced(const std::string& from, const std::string& to) const {
    EXPECT_EQ(from.size(), to.size());
    std::string bytes = weights_;
    const size_t found = bytes.find(from);
    EXPECT_NE(found, std::string::npos) << from;
    return bytes.replace(found, from.size(), to);
  }

  const std::string weights_ = Contents(Source(GetParam()) + "/model.safetensors");
};

INSTANTIATE_TEST_SUITE_P(Models, EncoderLoadTest, testing::Values("jina_code_mean", "nomic_moe_mean"),
                         [](const auto& param_info) { return param_info.param; });

TEST_P(EncoderLoadTest, UndamagedFilesLoad) {
  const ModelConfig model = LoadModelConfig(Source(GetParam()));
  for (const int64_t ranks : {1, 2}) EXPECT_EQ(LoadError(model, ranks), "");
}

TEST_P(EncoderLoadTest, EveryMissingTensorIsNamed) {
  for (const std::string& name : SafetensorsFile(Source(GetParam()) + "/model.safetensors").Names()) {
    std::string other = name;
    other.back() = 'X';
    const std::string error = ErrorOf(Replaced('"' + name + '"', '"' + other + '"'));
    EXPECT_NE(error.find("tensor " + name + " of "), std::string::npos) << name << ": " << error;
    EXPECT_NE(error.find("not in the file"), std::string::npos) << name << ": " << error;
  }
}

TEST_P(EncoderLoadTest, CutFilesAreRejected) {
  for (const size_t size : {size_t{0}, size_t{7}, size_t{1000}, weights_.size() / 2, weights_.size() - 1}) {
    const std::string error = ErrorOf(weights_.substr(0, size));
    EXPECT_NE(error.find("model.safetensors: "), std::string::npos) << size << ": " << error;
  }
}

using NomicMoeLoadTest = EncoderLoadTest;
INSTANTIATE_TEST_SUITE_P(Models, NomicMoeLoadTest, testing::Values("nomic_moe_mean"),
                         [](const auto& param_info) { return param_info.param; });

TEST_P(NomicMoeLoadTest, ExpertsOfAnotherShapeOrTypeAreNamed) {
  for (const std::string name : {"encoder.layers.1.mlp.experts.mlp.w1", "encoder.layers.1.mlp.experts.mlp.w2"}) {
    const std::string entry = '"' + name + R"(":{"dtype":"F32","shape":)";
    const std::string shape = ErrorOf(Replaced(entry + "[200,32]", entry + "[100,64]"));
    EXPECT_NE(shape.find("tensor " + name + " of "), std::string::npos) << shape;
    EXPECT_NE(shape.find("shape is [100, 64] but the model needs [200, 32]"), std::string::npos) << shape;
    const std::string type = ErrorOf(Replaced('"' + name + R"(":{"dtype":"F32")", '"' + name + R"(":{"dtype":"I32")"));
    EXPECT_NE(type.find(name), std::string::npos) << type;
  }
}

TEST_P(NomicMoeLoadTest, AnotherNumberOfExpertsIsRejected) {
  ModelConfig model = LoadModelConfig(Source(GetParam()));
  model.num_experts = 4;
  EXPECT_NE(LoadError(model).find("mlp.router.layer.weight"), std::string::npos);
}

class GgufEncoderLoadTest : public testing::TestWithParam<std::string> {
 protected:
  std::string ErrorOf(const std::string& bytes) const {
    return MessageOf<ModelError>([&] {
      const std::string error = LoadError(LoadGgufConfig(directory_.Write("model.gguf", bytes)));
      if (!error.empty()) throw ModelError(error);
    });
  }

  const std::string path_ = Source(GetParam()) + "/model.gguf";
  const std::string bytes_ = Contents(path_);
  const TempDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Models, GgufEncoderLoadTest, testing::Values("gguf_jina_code_mean", "gguf_nomic_moe_mean"),
                         [](const auto& param_info) { return param_info.param; });

// Tensors that are in no architecture are rejected, and so are files without a tensor that is needed.
TEST_P(GgufEncoderLoadTest, EveryRenamedTensorIsNamed) {
  ASSERT_EQ(ErrorOf(bytes_), "");
  const GgufFile file(path_);
  for (const GgufTensor* tensor : file.tensors()) {
    std::string bytes = bytes_;
    const size_t found = bytes.find(tensor->name);
    ASSERT_NE(found, std::string::npos) << tensor->name;
    bytes[found + tensor->name.find_last_of('.') - 1] = 'X';
    EXPECT_NE(ErrorOf(bytes).find("tensor "), std::string::npos) << tensor->name << ": " << ErrorOf(bytes);
  }
}

TEST_P(GgufEncoderLoadTest, CutFilesAreRejected) {
  for (size_t size = 0; size < bytes_.size(); size += 1 + bytes_.size() / 50) {
    EXPECT_NE(ErrorOf(bytes_.substr(0, size)), "") << size;
  }
}

}  // namespace
}  // namespace vllm
