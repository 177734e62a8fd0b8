// Every architecture that is read from GGUF, on tiny random models, against transformers' float32 log-probabilities
// (tests/golden/gguf_golden.py makes the files and the expected values).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/model_loader/gguf_config.h"
#include "engine/model_loader/safetensors.h"
#include "engine/models/registry.h"
#include "kernels/dtype.h"
#include "tests/support/one_request.h"

namespace vllm {
namespace {

using testing_support::OneRequest;

constexpr int64_t kVocab = 64;
constexpr int64_t kLength = 60;

std::string Folder(const std::string& name) { return std::string(VLLMCLI_TEST_DATA) + "/gguf/" + name; }

std::vector<std::string> Cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Folder(""))) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The file, or some part of a split one.
std::string ModelFile(const std::string& name) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(Folder(name))) {
    if (entry.path().extension() == ".gguf") files.push_back(entry.path().string());
  }
  return *std::max_element(files.begin(), files.end());
}

class GgufGoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  static VllmConfig Config(const std::string& name, int64_t ranks, DType dtype) {
    VllmConfig config;
    config.model = LoadGgufConfig(ModelFile(name));
    config.model.dtype = dtype;
    config.parallel.tensor_parallel_size = ranks;
    config.parallel.threads_per_rank = 1;
    config.Finalize();
    return config;
  }

  std::vector<float> Golden(const std::string& name, const std::vector<int64_t>& shape) const {
    const SafetensorsFile file(Folder(GetParam()) + "/golden.safetensors");
    const TensorView view = file.Get(name, shape);
    std::vector<float> values(static_cast<size_t>(view.num_elements()));
    std::memcpy(values.data(), view.data.data(), view.data.size());
    return values;
  }

  std::vector<int32_t> Prompt() const {
    std::vector<int32_t> prompt;
    for (const float id : Golden("ids", {kLength})) prompt.push_back(static_cast<int32_t>(id));
    return prompt;
  }

  void ExpectGolden(const VllmConfig& config, int64_t chunk, double tolerance) const {
    const std::vector<float> expected = Golden("logprobs", {kLength, kVocab});
    OneRequest engine(config);
    engine.Greedy(Prompt(), 1, chunk, -1, -1);
    Logprobs got = engine.prompt_output;
    got.Append(engine.output_logprobs);
    ASSERT_EQ(got.num_positions(), static_cast<size_t>(kLength));
    double worst = 0.0;
    for (size_t position = 0; position < static_cast<size_t>(kLength); ++position) {
      for (size_t k = 0; k < got.width; ++k) {
        const size_t at = position * got.width + k;
        const double want = expected[position * kVocab + static_cast<size_t>(got.token_ids[at])];
        worst = std::max(worst, std::abs(got.logprobs[at] - want));
      }
    }
    EXPECT_LT(worst, tolerance);
  }
};

INSTANTIATE_TEST_SUITE_P(Architectures, GgufGoldenTest, ::testing::ValuesIn(Cases()),
                         [](const auto& name) { return name.param; });

TEST_P(GgufGoldenTest, AgreesWithTransformers) { ExpectGolden(Config(GetParam(), 1, DType::kFloat32), 2048, 1e-4); }

TEST_P(GgufGoldenTest, AgreesWithTransformersInChunks) {
  ExpectGolden(Config(GetParam(), 1, DType::kFloat32), 7, 1e-4);
}

TEST_P(GgufGoldenTest, AgreesWithTransformersOnTwoRanks) {
  ExpectGolden(Config(GetParam(), 2, DType::kFloat32), 16, 1e-4);
}

TEST_P(GgufGoldenTest, TheFilesOwnTypeIsNotFarOff) {
  const VllmConfig config = Config(GetParam(), 1, LoadGgufConfig(ModelFile(GetParam())).dtype);
  ExpectGolden(config, 2048, config.model.dtype == DType::kFloat32 ? 1e-4 : 0.5);
}

}  // namespace
}  // namespace vllm
