// Compares every supported GGUF architecture and tensor type with transformers, on tiny random models. The expected
// values are the float32 log-probabilities of the model with the dequantized weights. tests/golden/gguf_golden.py
// writes the models and the expected values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/gguf/format/file.h"
#include "engine/model_loader/hf/safetensors.h"
#include "engine/models/registry.h"
#include "kernels/matrix/dtype.h"
#include "kernels/matrix/quant_codes.h"
#include "tests/support/one_request.h"
#include "tests/support/spread.h"

namespace vllm {
namespace {

using testing_support::Difference;
using testing_support::DifferenceInSpreads;
using testing_support::kDequantizedLimit;
using testing_support::OneRequest;

constexpr int64_t kVocab = 64;
constexpr int64_t kLength = 60;
// Limits for the root mean square difference. In float16, the KV cache and floating-point matrices have 11 significant
// bits. In bfloat16, they have 8.
constexpr double kFloat16Limit = 0.006;
constexpr double kBFloat16Limit = 0.08;  // allows for rounding that changes the choice of an expert
// The integer kernels round activations to 8 bits in every layer, and models with random weights amplify rounding
// errors.
constexpr double kInt8ActivationsLimit = 0.08;

std::string Directory(const std::string& name) { return std::string(VLLMCLI_TEST_DATA) + "/gguf/" + name; }

std::vector<std::string> Cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Directory(""))) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the path of the GGUF file, or of one part of a split model.
std::string ModelFile(const std::string& name) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(Directory(name))) {
    if (entry.path().extension() == ".gguf") files.push_back(entry.path().string());
  }
  return *std::max_element(files.begin(), files.end());
}

class GgufGoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  static VllmConfig Config(const std::string& name, int64_t ranks, kernels::DType dtype) {
    VllmConfig config;
    config.model = LoadGgufConfig(ModelFile(name));
    config.model.dtype = dtype;
    config.parallel.tensor_parallel_size = ranks;
    config.parallel.threads_per_rank = 1;
    config.Finalize();
    return config;
  }

  std::vector<float> Golden(const std::string& name, const std::vector<int64_t>& shape) const {
    const SafetensorsFile file(Directory(GetParam()) + "/golden.safetensors");
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

  // Returns the difference from the golden log-probabilities, in units of the spread of each position's logits.
  Difference DifferenceOf(const VllmConfig& config, int64_t chunk) const {
    OneRequest engine(config);
    engine.Greedy(Prompt(), 1, chunk, -1, -1);
    Logprobs got = engine.prompt_output;
    got.Append(engine.output_logprobs);
    std::vector<double> in_token_order(got.num_positions() * kVocab);
    for (size_t i = 0; i < got.logprobs.size(); ++i) {
      in_token_order[i / got.width * kVocab + static_cast<size_t>(got.token_ids[i])] = got.logprobs[i];
    }
    const Difference difference = DifferenceInSpreads(in_token_order, Golden("logprobs", {kLength, kVocab}), kVocab);
    RecordProperty("worst", std::to_string(difference.worst));
    RecordProperty("rms", std::to_string(difference.root_mean_square));
    return difference;
  }
};

INSTANTIATE_TEST_SUITE_P(Architectures, GgufGoldenTest, ::testing::ValuesIn(Cases()),
                         [](const auto& name) { return name.param; });

bool HasPackedForm(const std::string& name) {
  const GgufFile file(ModelFile(name));
  return std::any_of(file.tensors().begin(), file.tensors().end(), [](const GgufTensor* tensor) {
    if (!tensor->type->weight_type) return false;
    const std::optional<kernels::QuantFormat> format = kernels::BlockFormat(*tensor->type->weight_type);
    return format && kernels::PackedFormOf({.format = *format});
  });
}

TEST_P(GgufGoldenTest, AgreesWithTransformers) {
  EXPECT_LE(DifferenceOf(Config(GetParam(), 1, kernels::DType::kFloat32), 2048).worst, kDequantizedLimit);
}

TEST_P(GgufGoldenTest, AgreesWithTransformersWithChunkedPrefill) {
  EXPECT_LE(DifferenceOf(Config(GetParam(), 1, kernels::DType::kFloat32), 7).worst, kDequantizedLimit);
}

TEST_P(GgufGoldenTest, AgreesWithTransformersOnTwoRanks) {
  EXPECT_LE(DifferenceOf(Config(GetParam(), 2, kernels::DType::kFloat32), 16).worst, kDequantizedLimit);
}

TEST_P(GgufGoldenTest, TheCheckpointDTypeAddsOnlyRoundingErrors) {
  const ModelConfig model = LoadGgufConfig(ModelFile(GetParam()));
  const kernels::KVDType kv_dtype = DefaultKVDType(model);
  const double limit = model.dtype == kernels::DType::kFloat32  ? kDequantizedLimit
                       : HasPackedForm(GetParam())              ? kInt8ActivationsLimit
                       : kv_dtype == kernels::KVDType::kFloat16 ? kFloat16Limit
                                                                : kBFloat16Limit;
  EXPECT_LE(DifferenceOf(Config(GetParam(), 1, model.dtype), 2048).root_mean_square, limit);
}

}  // namespace
}  // namespace vllm
