#include "engine/model_loader/gguf/weights.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/checkpoint/open_weights.h"
#include "engine/model_loader/gguf/config.h"
#include "tests/model_loader/gguf_builder.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using Type = GgufValueType;

class GgufWeightsTest : public testing::Test {
 protected:
  std::unique_ptr<WeightSource> Open(const GgufBuilder& file) {
    VllmConfig config;
    config.model = LoadGgufConfig(directory_.Write("m.gguf", file.Build()));
    return OpenWeights(config);
  }
  std::string ErrorOf(const GgufBuilder& file) {
    return MessageOf<ModelError>([&] { Open(file); });
  }

  TempDirectory directory_;
};

// Returns the first element of each row.
std::vector<float> FirstOfRows(const TensorView& view) {
  std::vector<float> values;
  for (int64_t row = 0; row < view.num_elements() / view.shape.back(); ++row) {
    float value = 0.0F;
    std::memcpy(&value, view.Row(row), sizeof(value));
    values.push_back(value);
  }
  return values;
}

std::vector<float> Elements(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.num_elements()));
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

TEST_F(GgufWeightsTest, TensorsHaveHuggingFaceNames) {
  const auto weights = Open(TinyGguf());
  EXPECT_EQ(weights->Names(), (std::vector<std::string>{
                                  "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
                                  "model.layers.0.mlp.down_proj.weight", "model.layers.0.mlp.gate_proj.weight",
                                  "model.layers.0.mlp.up_proj.weight", "model.layers.0.post_attention_layernorm.weight",
                                  "model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.o_proj.weight",
                                  "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.v_proj.weight",
                                  "model.norm.weight"}));
  EXPECT_TRUE(weights->Contains("model.norm.weight"));
  EXPECT_FALSE(weights->Contains("lm_head.weight"));
  EXPECT_EQ(FirstOfRows(weights->Get("model.embed_tokens.weight", std::array<int64_t, 2>{5, 8})),
            (std::vector<float>{0, 8, 16, 24, 32}));
}

TEST_F(GgufWeightsTest, QueryAndKeyRowsAreInModelOrder) {
  const auto weights = Open(TinyGguf());
  // The query has two heads of four rows each, and the key has one such head. The converter stores the rows of a head
  // in the order 0 2 1 3.
  EXPECT_EQ(FirstOfRows(weights->Get("model.layers.0.self_attn.q_proj.weight", std::array<int64_t, 2>{8, 8})),
            (std::vector<float>{0, 16, 8, 24, 32, 48, 40, 56}));
  EXPECT_EQ(FirstOfRows(weights->Get("model.layers.0.self_attn.k_proj.weight", std::array<int64_t, 2>{4, 8})),
            (std::vector<float>{0, 16, 8, 24}));
  EXPECT_EQ(FirstOfRows(weights->Get("model.layers.0.self_attn.v_proj.weight", std::array<int64_t, 2>{4, 8})),
            (std::vector<float>{0, 8, 16, 24}));
}

TEST_F(GgufWeightsTest, QueryBiasesAreInModelOrder) {
  GgufBuilder file = TinyGguf();
  file.Floats("blk.0.attn_q.bias", {8}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto weights = Open(file);
  EXPECT_EQ(Elements(weights->Get("model.layers.0.self_attn.q_proj.bias", std::array<int64_t, 1>{8})),
            (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
}

TEST_F(GgufWeightsTest, FusedProjectionsAreSplit) {
  GgufBuilder file;
  file.String("general.architecture", "llama").Int("llama.context_length", 64).Int("llama.embedding_length", 8);
  file.Int("llama.block_count", 1).Int("llama.feed_forward_length", 6).Int("llama.attention.head_count", 2);
  file.Int("llama.attention.head_count_kv", 1).Float("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  std::vector<float> values(16 * 8);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  file.Floats("token_embd.weight", {8, 2}, std::vector<float>(16)).Floats("blk.0.attn_qkv.weight", {8, 16}, values);
  std::vector<float> bias(values.begin(), values.begin() + 16);
  file.Floats("blk.0.attn_qkv.bias", {16}, bias);
  const auto weights = Open(file);
  EXPECT_EQ(FirstOfRows(weights->Get("model.layers.0.self_attn.k_proj.weight", std::array<int64_t, 2>{4, 8})),
            (std::vector<float>{64, 80, 72, 88}));
  EXPECT_EQ(FirstOfRows(weights->Get("model.layers.0.self_attn.v_proj.weight", std::array<int64_t, 2>{4, 8})),
            (std::vector<float>{96, 104, 112, 120}));
  EXPECT_EQ(Elements(weights->Get("model.layers.0.self_attn.k_proj.bias", std::array<int64_t, 1>{4})),
            (std::vector<float>{8, 10, 9, 11}));
  EXPECT_EQ(Elements(weights->Get("model.layers.0.self_attn.v_proj.bias", std::array<int64_t, 1>{4})),
            (std::vector<float>{12, 13, 14, 15}));
}

TEST_F(GgufWeightsTest, StackedExpertsBecomeSeparateMatrices) {
  GgufBuilder file = TinyGguf("qwen3moe");
  file.Int("qwen3moe.expert_count", 2)
      .Int("qwen3moe.expert_used_count", 1)
      .Int("qwen3moe.expert_feed_forward_length", 3);
  std::vector<float> values(2 * 3 * 8);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  file.Floats("blk.0.ffn_up_exps.weight", {8, 3, 2}, values);
  const auto weights = Open(file);
  EXPECT_EQ(FirstOfRows(weights->Get("model.layers.0.mlp.experts.1.up_proj.weight", std::array<int64_t, 2>{3, 8})),
            (std::vector<float>{24, 32, 40}));
  EXPECT_FALSE(weights->Contains("model.layers.0.mlp.experts.2.up_proj.weight"));
}

// The factors of NVFP4 matrices.
class GgufNvfp4Test : public GgufWeightsTest {
 protected:
  static constexpr uint32_t kNvfp4 = 40;
  static GgufBuilder WithExperts() {
    GgufBuilder file = TinyGguf("qwen3moe");
    file.Int("qwen3moe.expert_count", 2)
        .Int("qwen3moe.expert_used_count", 1)
        .Int("qwen3moe.expert_feed_forward_length", 3)
        .Tensor("blk.0.ffn_up_exps.weight", {64, 3, 2}, kNvfp4, std::string(2 * 3 * 36, '\x38'))
        .Tensor("output.weight", {64, 5}, kNvfp4, std::string(5 * 36, '\x38'));
    return file;
  }
  static float ScaleOf(const WeightSource& weights, const std::string& name, int64_t rows) {
    return weights.Get(name + ".weight", std::array<int64_t, 2>{rows, 64}).scale;
  }
};

TEST_F(GgufNvfp4Test, EachExpertHasItsOwnFactor) {
  GgufBuilder file = WithExperts();
  file.Floats("blk.0.ffn_up_exps.scale", {2}, {0.5F, 3.0F}).Floats("blk.0.ffn_up_exps.input_scale", {2}, {7.0F, 8.0F});
  const auto weights = Open(file);
  EXPECT_EQ(ScaleOf(*weights, "model.layers.0.mlp.experts.0.up_proj", 3), 0.5F);
  EXPECT_EQ(ScaleOf(*weights, "model.layers.0.mlp.experts.1.up_proj", 3), 3.0F);
  EXPECT_EQ(ScaleOf(*weights, "lm_head", 5), 1.0F);
}

TEST_F(GgufNvfp4Test, OneFactorIsThatOfTheWholeTensor) {
  GgufBuilder file = WithExperts();
  file.Floats("output.scale", {1}, {0.25F}).Floats("blk.0.ffn_up_exps.scale", {1}, {2.0F});
  const auto weights = Open(file);
  EXPECT_EQ(ScaleOf(*weights, "lm_head", 5), 0.25F);
  EXPECT_EQ(ScaleOf(*weights, "model.layers.0.mlp.experts.1.up_proj", 3), 2.0F);
}

TEST_F(GgufNvfp4Test, FactorsOfTheWrongShapeOrValueAreRejected) {
  const auto error = [this](const std::vector<float>& values) {
    GgufBuilder file = WithExperts();
    return ErrorOf(file.Floats("output.scale", {values.size()}, values));
  };
  EXPECT_NE(error({1.0F, 2.0F}).find("output.scale"), std::string::npos);
  for (const float value : {0.0F, -1.0F, INFINITY, std::nanf("")}) {
    EXPECT_NE(error({value}).find("must have finite values above 0"), std::string::npos) << value;
  }
  GgufBuilder other = TinyGguf();
  EXPECT_NE(ErrorOf(other.Floats("blk.0.attn_q.input_scale", {1}, {1.0F})).find("not part of the architecture llama"),
            std::string::npos)
      << "the matrix is not NVFP4";
}

TEST_F(GgufWeightsTest, TensorsOutsideTheArchitectureAreRejected) {
  const auto with = [](const char* name) {
    GgufBuilder file = TinyGguf();
    return file.Floats(name, {4}, {1, 2, 3, 4});
  };
  EXPECT_NE(ErrorOf(with("blk.0.attn_sinks.weight")).find("not part of the architecture llama"), std::string::npos);
  EXPECT_NE(ErrorOf(with("other.weight")).find("not part of the architecture llama"), std::string::npos);
  EXPECT_NE(ErrorOf(with("blk.0.attn_q.scale")).find("not part of the architecture llama"), std::string::npos);
  // The model does not add these biases.
  for (const char* name : {"token_embd.bias", "output.bias", "output_norm.bias", "blk.0.attn_norm.bias",
                           "blk.0.ffn_norm.bias", "blk.0.attn_q_norm.bias"}) {
    EXPECT_NE(ErrorOf(with(name)).find("not part of the architecture llama"), std::string::npos) << name;
  }
  for (const char* name : {"blk.0.ffn_up_exps.bias", "blk.0.ffn_down_shexp.bias", "blk.0.ffn_gate.1.bias"}) {
    GgufBuilder file = TinyGguf("qwen2moe");
    file.Int("qwen2moe.expert_count", 4)
        .Int("qwen2moe.expert_used_count", 1)
        .Floats(name, {2, 4}, std::vector<float>(8));
    EXPECT_NE(ErrorOf(file).find("not part of the architecture qwen2moe"), std::string::npos) << name;
  }
  EXPECT_NE(ErrorOf(with("blk.1.attn_norm.weight")).find("layer index is not below block_count 1"), std::string::npos);
  EXPECT_NE(ErrorOf(with("blk.99999999999999999999.attn_norm.weight")), "");
  EXPECT_NE(ErrorOf(with("blk.-1.attn_norm.weight")), "");
  EXPECT_NE(ErrorOf(with("blk.00.attn_norm.weight")), "");
}

TEST_F(GgufWeightsTest, ShapesAndTypesAreChecked) {
  GgufBuilder file = TinyGguf();
  file.Tensor("output.weight", {256, 2}, 41, std::string(72, 'x'));
  const auto weights = Open(file);
  const auto error = [&](const char* name, std::vector<int64_t> shape) {
    return MessageOf<ModelError>([&] { weights->Get(name, shape); });
  };
  EXPECT_NE(error("model.norm.weight", {9}).find("shape is [8] but the model needs [9]"), std::string::npos);
  EXPECT_NE(error("model.norm.bias", {8}).find("not in the file"), std::string::npos);
  EXPECT_NE(error("lm_head.weight", {2, 256}).find("type is not supported (Q1_0)"), std::string::npos);
  EXPECT_EQ(error("model.norm.weight", {1, 8}), "");
}

// A model in three parts: one with metadata only, one with five tensors, one with six.
class SplitGgufTest : public testing::Test {
 protected:
  void SetUp() override { WriteParts(11, 3); }

  void WriteParts(int32_t num_tensors, uint16_t count) {
    const GgufHeader whole = Parse();
    for (uint16_t part = 0; part < 3; ++part) {
      GgufBuilder file;
      if (part == 0) {
        file.String("general.architecture", "llama").Int("llama.context_length", 64).Int("llama.embedding_length", 8);
        file.Int("llama.block_count", 1).Int("llama.feed_forward_length", 6).Int("llama.attention.head_count", 2);
        file.Int("llama.attention.head_count_kv", 1).Float("llama.attention.layer_norm_rms_epsilon", 1e-5F);
      }
      file.Pair("split.no", Type::kUint16, Raw(part)).Pair("split.count", Type::kUint16, Raw(count));
      file.Pair("split.tensors.count", Type::kInt32, Raw(num_tensors));
      for (size_t i = part == 1 ? 0 : 5; part > 0 && i < (part == 1 ? 5U : 11U); ++i) {
        const GgufTensor& tensor = whole.tensors[i];
        file.Tensor(tensor.name, {tensor.shape.rbegin(), tensor.shape.rend()}, 0,
                    {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()});
      }
      directory_.Write(Name(part + 1), file.Build());
    }
  }
  GgufHeader Parse() {
    bytes_ = TinyGguf().Build();
    return ParseGguf(std::as_bytes(std::span(bytes_)), "x");
  }
  static std::string Name(int part) { return "tiny-0000" + std::to_string(part) + "-of-00003.gguf"; }
  std::string Path(int part) const { return directory_.path() + "/" + Name(part); }
  std::string ErrorOf(int part) const {
    return MessageOf<ModelError>([&] { GgufFile file(Path(part)); });
  }

  TempDirectory directory_;
  std::string bytes_;
};

TEST_F(SplitGgufTest, OpensFromAnyPart) {
  for (const int part : {1, 2, 3}) {
    VllmConfig config;
    config.model = LoadGgufConfig(Path(part));
    EXPECT_EQ(config.model.gguf_file, Path(1));
    EXPECT_EQ(config.model.vocab_size, 5);
    EXPECT_EQ(OpenWeights(config)->Names().size(), 11U);
    EXPECT_EQ(GgufFile(Path(part)).paths(), (std::vector<std::string>{Path(1), Path(2), Path(3)}));
    EXPECT_EQ(GgufFile::PartsOf(Path(part)), (std::vector<std::string>{Path(1), Path(2), Path(3)}));
  }
}

TEST_F(SplitGgufTest, TheErrorForAMissingPartContainsItsName) {
  std::filesystem::remove(Path(2));
  EXPECT_NE(ErrorOf(1).find(Name(2)), std::string::npos);
}

TEST_F(SplitGgufTest, PartsThatDoNotBelongTogetherAreRejected) {
  std::filesystem::copy_file(Path(3), Path(2), std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(ErrorOf(1).find("split.no: does not match the file name"), std::string::npos);
  WriteParts(12, 3);
  EXPECT_NE(ErrorOf(1).find("split.tensors.count: does not match the 11 tensors of the parts (12)"), std::string::npos);
  WriteParts(11, 2);
  EXPECT_NE(ErrorOf(1), "");
  WriteParts(11, 65535);
  EXPECT_NE(ErrorOf(1).find("split.count: outside"), std::string::npos);
}

TEST_F(SplitGgufTest, ARenamedPartIsRejected) {
  std::filesystem::rename(Path(1), directory_.path() + "/other.gguf");
  const std::string message = MessageOf<ModelError>([&] { GgufFile file(directory_.path() + "/other.gguf"); });
  EXPECT_NE(message.find("must be named NAME-00001-of-00003.gguf"), std::string::npos) << message;
}

TEST_F(SplitGgufTest, ATensorInTwoPartsIsRejected) {
  GgufBuilder file;
  file.Pair("split.no", Type::kUint16, Raw<uint16_t>(2)).Pair("split.count", Type::kUint16, Raw<uint16_t>(3));
  file.Floats("output_norm.weight", {8}, std::vector<float>(8));
  directory_.Write(Name(3), file.Build());
  EXPECT_NE(ErrorOf(1).find("tensor output_norm.weight: occurs in two parts"), std::string::npos);
}

}  // namespace
}  // namespace vllm
