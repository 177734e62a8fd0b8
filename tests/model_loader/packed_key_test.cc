// Tests that the description of packed weights changes with the model and with every setting that packing depends on.
#include "engine/model_loader/packed_cache/packed_key.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "engine/model_loader/mapped_file.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;

// A weight source with files but no tensors.
class FileSource final : public WeightSource {
 public:
  explicit FileSource(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) files_.push_back(std::make_unique<MappedFile>(path));
  }
  bool Contains(std::string_view /*name*/) const override { return false; }
  TensorView Get(std::string_view /*name*/, std::span<const int64_t> /*shape*/) const override { return {}; }
  std::vector<std::string> Names() const override { return {}; }
  int64_t TotalBytes() const override { return 0; }
  std::vector<const MappedFile*> Files() const override {
    std::vector<const MappedFile*> files;
    for (const auto& file : files_) files.push_back(file.get());
    return files;
  }

 private:
  std::vector<std::unique_ptr<MappedFile>> files_;
};

class PackedKeyTest : public testing::Test {
 protected:
  PackedKeyTest() {
    directory_.Write("config.json", "{}");
    directory_.Write("model.safetensors", std::string(size_t{6} << 20, 'w'));
    config_.model.directory = directory_.path();
    config_.model.architecture = "LlamaForCausalLM";
  }
  std::string Text(const std::string& isa = "avx2") const {
    return DescribeWeights(config_, FileSource({directory_.path() + "/model.safetensors"}), isa);
  }

  TempDirectory directory_;
  VllmConfig config_;
};

TEST_F(PackedKeyTest, TheSameFilesAndSettingsGiveTheSameDescription) {
  EXPECT_FALSE(Text().empty());
  EXPECT_EQ(Text(), Text());
  EXPECT_EQ(HexDigest(Text()).size(), 32u);
  EXPECT_EQ(HexDigest(Text()), HexDigest(Text()));
}

TEST_F(PackedKeyTest, EverySettingThatPackingDependsOnChangesTheDescription) {
  std::vector<std::string> texts = {Text(), Text("avx512")};
  config_.model.dtype = kernels::DType::kBFloat16;
  texts.push_back(Text());
  config_.model.quantization.method = QuantizationMethod::kInt8;
  texts.push_back(Text());
  config_.linear_backend = LinearBackend::kOpenBlas;
  texts.push_back(Text());
  config_.model.architecture = "Qwen2ForCausalLM";
  texts.push_back(Text());
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(texts[i], texts[j]);
      EXPECT_NE(HexDigest(texts[i]), HexDigest(texts[j]));
    }
  }
}

TEST_F(PackedKeyTest, TheNumberOfRanksDoesNotChangeTheDescription) {
  const std::string one = Text();
  config_.parallel.tensor_parallel_size = 2;
  EXPECT_EQ(Text(), one);
}

TEST_F(PackedKeyTest, TheCalibrationChangesTheDescription) {
  const FileSource source({directory_.path() + "/model.safetensors"});
  const auto text = [&](std::string_view calibration) { return DescribeWeights(config_, source, "avx2", calibration); };
  EXPECT_EQ(text(""), Text());
  EXPECT_NE(text("a"), Text());
  EXPECT_NE(text("a"), text("b"));
}

TEST_F(PackedKeyTest, ChangedConfigChangesTheDescription) {
  const std::string before = Text();
  directory_.Write("config.json", "{ }");
  EXPECT_NE(Text(), before);
}

TEST_F(PackedKeyTest, ChangedFileOfTheSameNameChangesTheDescription) {
  const std::string path = directory_.path() + "/model.safetensors";
  const std::string before = Text();
  const auto time = fs::last_write_time(path);
  // Change one byte in place and reset the modification time. The first offset is in the first 4 MiB, which are hashed
  // completely. The second is the last byte of the file, which belongs to a sample.
  for (const std::streamoff offset : {std::streamoff{3} << 20, (std::streamoff{6} << 20) - 1}) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file.put('x');
    file.close();
    fs::last_write_time(path, time);
    EXPECT_NE(Text(), before) << offset;
    std::fstream back(path, std::ios::in | std::ios::out | std::ios::binary);
    back.seekp(offset);
    back.put('w');
    back.close();
    fs::last_write_time(path, time);
    EXPECT_EQ(Text(), before);
  }
  fs::last_write_time(path, time + std::chrono::nanoseconds(1));
  EXPECT_NE(Text(), before);
  fs::last_write_time(path, time);
  fs::copy_file(path, path + ".new");
  fs::last_write_time(path + ".new", time);
  fs::rename(path + ".new", path);
  EXPECT_NE(Text(), before) << "the inode changed";
}

TEST_F(PackedKeyTest, WeightsThatWereNotReadFromFilesHaveAnEmptyDescription) {
  EXPECT_EQ(DescribeWeights(config_, FileSource({}), "avx2"), "");
}

}  // namespace
}  // namespace vllm
