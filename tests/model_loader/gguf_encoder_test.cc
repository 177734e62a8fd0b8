// Tests how the metadata of GGUF files of encoders is read, and which files are rejected. Vectors and scores of whole
// models are compared in pooling_program_test.
#include "engine/model_loader/gguf/encoder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/gguf/config.h"
#include "tests/model_loader/gguf_builder.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

constexpr uint64_t kHidden = 8;

class GgufEncoderTest : public testing::Test {
 protected:
  static GgufBuilder Build(const std::string& architecture) {
    GgufBuilder file;
    file.String("general.architecture", architecture);
    file.Int(architecture + ".context_length", 16).Int(architecture + ".embedding_length", kHidden);
    file.Int(architecture + ".block_count", 6).Int(architecture + ".feed_forward_length", 12);
    file.Int(architecture + ".attention.head_count", 2);
    file.Float(architecture + ".attention.layer_norm_epsilon", 1e-5F);
    file.Float(architecture + ".attention.layer_norm_rms_epsilon", 1e-5F);
    file.Bool(architecture + ".attention.causal", false);
    Matrix(file, "token_embd.weight", 10);
    return file;
  }
  static void Matrix(GgufBuilder& file, const std::string& name, uint64_t rows, uint64_t columns = kHidden) {
    file.Floats(name, {columns, rows}, std::vector<float>(rows * columns));
  }
  static GgufBuilder Bert() {
    GgufBuilder file = Build("bert");
    Matrix(file, "position_embd.weight", 14);
    return file;
  }

  ModelConfig Load(const GgufBuilder& file) { return LoadGgufConfig(directory_.Write("m.gguf", file.Build())); }
  std::string ErrorOf(const GgufBuilder& file) {
    return MessageOf<ModelError>([&] { Load(file); });
  }

  TempDirectory directory_;
};

TEST_F(GgufEncoderTest, BertHasLearnedPositionsAndTokenTypes) {
  GgufBuilder file = Bert();
  Matrix(file, "token_types.weight", 2);
  const ModelConfig config = Load(file);
  EXPECT_EQ(config.architecture, "BertModel");
  EXPECT_TRUE(config.is_encoder);
  EXPECT_FALSE(config.can_generate);
  EXPECT_EQ(config.type_vocab_size, 2);
  EXPECT_EQ(config.max_model_len, 14);
  EXPECT_EQ(config.position_offset, 0);
  EXPECT_EQ(config.pooler.types, std::vector{PoolingType::kCls});
  EXPECT_FALSE(config.pooler.classifier);
}

TEST_F(GgufEncoderTest, PoolingTypeIsRead) {
  const std::vector<PoolingType> types = {PoolingType::kMean, PoolingType::kCls, PoolingType::kLast};
  for (uint32_t type = 1; type <= 3; ++type) {
    GgufBuilder file = Bert();
    EXPECT_EQ(Load(file.Int("bert.pooling_type", type)).pooler.types, std::vector{types[type - 1]});
  }
  GgufBuilder file = Bert();
  EXPECT_NE(ErrorOf(file.Int("bert.pooling_type", 5)).find("bert.pooling_type: outside 0 to 4"), std::string::npos);
}

TEST_F(GgufEncoderTest, ClassifierOfRobertaHasALayerBeforeTheOutput) {
  GgufBuilder file = Bert();
  Matrix(file, "token_types.weight", 1);
  Matrix(file, "cls.weight", kHidden);
  Matrix(file, "cls.output.weight", 3);
  file.Floats("cls.output.bias", {3}, {1, 2, 3});
  const ModelConfig config = Load(file);
  EXPECT_EQ(config.architecture, "RobertaForSequenceClassification");
  ASSERT_TRUE(config.pooler.classifier);
  EXPECT_EQ(config.pooler.classifier->num_labels, 3);
  EXPECT_EQ(config.pooler.classifier->function, ClassifierConfig::Function::kSoftmax);
  ASSERT_EQ(config.pooler.classifier->layers.size(), 2u);
  EXPECT_EQ(config.pooler.classifier->layers[0].activation, PoolerActivation::kTanh);
  EXPECT_FALSE(config.pooler.classifier->layers[0].has_bias);
  EXPECT_TRUE(config.pooler.classifier->layers[1].has_bias);
}

TEST_F(GgufEncoderTest, ClassifierWithoutItsFirstLayerIsRejected) {
  GgufBuilder file = Bert();
  Matrix(file, "cls.output.weight", 1);
  EXPECT_NE(ErrorOf(file).find("tensor cls.weight: missing: llama.cpp's converter leaves out the layer"),
            std::string::npos);
}

TEST_F(GgufEncoderTest, ClassifierOfDistilBertIsRejected) {
  GgufBuilder file = Bert();
  Matrix(file, "cls.weight", kHidden);
  Matrix(file, "cls.output.weight", 1);
  EXPECT_NE(ErrorOf(file).find("tensor cls.output.weight: classifiers of DistilBERT are not supported"),
            std::string::npos);
}

TEST_F(GgufEncoderTest, JinaBertForCodeHasNormsOfQueriesAndKeys) {
  EXPECT_FALSE(Load(Build("jina-bert-v2")).use_qk_norm);
  GgufBuilder file = Build("jina-bert-v2");
  for (const std::string name : {"blk.0.attn_q_norm.weight", "blk.0.attn_k_norm.weight", "blk.0.attn_norm_2.weight"}) {
    file.Floats(name, {kHidden}, std::vector<float>(kHidden));
  }
  EXPECT_TRUE(Load(file).use_qk_norm);
}

TEST_F(GgufEncoderTest, NomicBertWithExpertsIsRead) {
  const auto build = [] {
    GgufBuilder file = Build("nomic-bert-moe");
    file.Int("nomic-bert-moe.expert_count", 4).Int("nomic-bert-moe.expert_used_count", 2);
    return file;
  };
  GgufBuilder file = build();
  const ModelConfig config = Load(file.Int("nomic-bert-moe.moe_every_n_layers", 3));
  EXPECT_EQ(config.architecture, "NomicBertModel");
  EXPECT_TRUE(config.is_encoder);
  EXPECT_FALSE(config.gated_mlp);
  EXPECT_FALSE(config.norm_topk_prob);
  EXPECT_EQ(config.num_experts_per_tok, 2);
  EXPECT_EQ(config.moe_intermediate_size, 12);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(config.layers[i].is_moe, i == 1 || i == 4) << i;
}

TEST_F(GgufEncoderTest, UnsupportedExpertsOfNomicBertAreRejectedByName) {
  const auto error_of = [&](int num_experts, int interval, const char* key, uint32_t value) {
    GgufBuilder file = Build("nomic-bert-moe");
    if (num_experts > 0) file.Int("nomic-bert-moe.expert_count", static_cast<uint32_t>(num_experts));
    file.Int("nomic-bert-moe.expert_used_count", 2);
    if (interval > 0) file.Int("nomic-bert-moe.moe_every_n_layers", static_cast<uint32_t>(interval));
    if (key != nullptr) file.Int("nomic-bert-moe." + std::string(key), value);
    return ErrorOf(file);
  };
  EXPECT_EQ(error_of(4, 2, nullptr, 0), "");
  EXPECT_NE(error_of(0, 2, nullptr, 0).find("expert_count: missing"), std::string::npos);
  EXPECT_NE(error_of(4, 0, nullptr, 0).find("moe_every_n_layers: missing"), std::string::npos);
  EXPECT_NE(error_of(4, 1, nullptr, 0).find("moe_every_n_layers: outside 2 to 1024"), std::string::npos);
  EXPECT_NE(error_of(4, 2, "expert_gating_func", 2).find("expert_gating_func: only softmax"), std::string::npos);
  EXPECT_NE(error_of(4, 2, "expert_shared_count", 1).find("expert_shared_count: shared experts"), std::string::npos);
  GgufBuilder file = Build("nomic-bert-moe");
  file.Int("nomic-bert-moe.expert_count", 4).Int("nomic-bert-moe.expert_used_count", 2);
  file.Int("nomic-bert-moe.moe_every_n_layers", 2).Bool("nomic-bert-moe.expert_weights_norm", true);
  EXPECT_NE(ErrorOf(file).find("expert_weights_norm: true is not supported"), std::string::npos);
}

TEST_F(GgufEncoderTest, JinaBertWithOtherTensorsIsRejected) {
  EXPECT_EQ(Load(Build("jina-bert-v2")).architecture, "JinaBertModel");
  for (const std::string name :
       {"blk.0.attn_k_norm.weight", "blk.0.attn_norm_2.weight", "blk.0.ffn_gate.weight", "cls.weight"}) {
    GgufBuilder file = Build("jina-bert-v2");
    Matrix(file, name, kHidden);
    EXPECT_NE(ErrorOf(file).find("tensor " + name + ": "), std::string::npos) << ErrorOf(file);
  }
}

TEST_F(GgufEncoderTest, TensorsOfAnotherShapeAreRejected) {
  EXPECT_NE(ErrorOf(Build("bert")).find("tensor position_embd.weight: missing"), std::string::npos);
  GgufBuilder types = Bert();
  Matrix(types, "token_types.weight", 2, kHidden + 1);
  EXPECT_NE(ErrorOf(types).find("tensor token_types.weight: must be a matrix of at most 1024 rows and 8 columns"),
            std::string::npos);
  GgufBuilder classifier = Bert();
  Matrix(classifier, "token_types.weight", 1);
  Matrix(classifier, "cls.weight", kHidden - 1);
  Matrix(classifier, "cls.output.weight", 1);
  EXPECT_NE(ErrorOf(classifier).find("tensor cls.weight: must have 8 rows"), std::string::npos);
  GgufBuilder dense = Build("gemma-embedding");
  Matrix(dense, "dense_2.weight", 12);
  Matrix(dense, "dense_3.weight", 6);
  EXPECT_NE(ErrorOf(dense).find("tensor dense_3.weight: must be a matrix of at most 16777216 rows and 12 columns"),
            std::string::npos);
}

TEST_F(GgufEncoderTest, EveryThirdLayerOfModernBertHasNoWindow) {
  GgufBuilder file = Build("modern-bert");
  file.Int("modern-bert.attention.sliding_window", 8).Float("modern-bert.rope.freq_base", 160000.0F);
  file.Float("modern-bert.rope.freq_base_swa", 10000.0F).String("modern-bert.hidden_activation", "silu");
  const ModelConfig config = Load(file);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(config.layers[i].sliding_window, i % 3 == 0 ? 0 : 5) << i;  // 4 tokens on each side, and the token
    EXPECT_EQ(config.layers[i].use_local_rope, i % 3 != 0) << i;
  }
  EXPECT_EQ(config.rope_local_theta, 10000.0);
  EXPECT_EQ(config.hidden_act, "silu");
  EXPECT_FALSE(config.norm_bias);
}

TEST_F(GgufEncoderTest, EverySixthLayerOfEmbeddingGemmaHasNoWindow) {
  GgufBuilder file = Build("gemma-embedding");
  file.Int("gemma-embedding.attention.sliding_window", 8);
  Matrix(file, "dense_2.weight", 12);
  Matrix(file, "dense_3.weight", 6, 12);
  const ModelConfig config = Load(file);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(config.layers[i].sliding_window, i == 5 ? 0 : 5) << i;
  EXPECT_EQ(config.pooler.VectorSize(config.hidden_size), 6);
}

TEST_F(GgufEncoderTest, DecodersMustBeCausal) {
  EXPECT_NE(ErrorOf(Build("llama")).find("llama.attention.causal: is false, but this architecture"), std::string::npos);
}

}  // namespace
}  // namespace vllm
