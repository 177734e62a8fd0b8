// Tests which layers of GGUF files have attention, recurrent state or an MLP, and the errors of such files.
#include "engine/model_loader/gguf/hybrid.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/gguf/config.h"
#include "tests/model_loader/gguf_builder.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using Type = GgufValueType;

class GgufHybridTest : public testing::Test {
 protected:
  // Builds a file without tensors. The arrays have one number per layer.
  static GgufBuilder File(const std::string& architecture, const std::vector<uint32_t>& kv_heads,
                          const std::vector<uint32_t>& widths, uint32_t num_heads = 4, uint32_t inner_size = 32) {
    GgufBuilder file;
    const std::string prefix = architecture + ".";
    file.String("general.architecture", architecture);
    file.Int(prefix + "context_length", 64);
    file.Int(prefix + "embedding_length", 32);
    file.Int(prefix + "block_count", 3);
    file.Int(prefix + "attention.head_count", num_heads);
    file.Int(prefix + "vocab_size", 10);
    file.Float(prefix + "attention.layer_norm_rms_epsilon", 1e-5F);
    if (!kv_heads.empty()) file.Array(prefix + "attention.head_count_kv", Type::kUint32, kv_heads);
    if (widths.size() == 1) {
      file.Int(prefix + "feed_forward_length", widths[0]);
    } else {
      file.Array(prefix + "feed_forward_length", Type::kUint32, widths);
    }
    file.Int(prefix + "ssm.conv_kernel", 4);
    file.Int(prefix + "ssm.state_size", 16);
    file.Int(prefix + "ssm.time_step_rank", 4);
    file.Int(prefix + "ssm.group_count", 2);
    file.Int(prefix + "ssm.inner_size", inner_size);
    return file;
  }
  ModelConfig Load(const GgufBuilder& file) { return LoadGgufConfig(directory_.Write("m.gguf", file.Build())); }
  std::string ErrorOf(const GgufBuilder& file) {
    return MessageOf<ModelError>([&] { Load(file); });
  }
  void ExpectError(const GgufBuilder& file, const std::string& part) {
    const std::string error = ErrorOf(file);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }

  TempDirectory directory_;
};

TEST_F(GgufHybridTest, LayersOfNemotronHHaveOneBlock) {
  const ModelConfig config = Load(File("nemotron_h", {0, 2, 0}, {0, 0, 48}));
  EXPECT_EQ(config.num_key_value_heads, 2);
  EXPECT_EQ(config.intermediate_size, 48);
  EXPECT_EQ(config.layers[0].mixer, LayerMixer::kMamba2);
  EXPECT_EQ(config.layers[1].mixer, LayerMixer::kAttention);
  EXPECT_EQ(config.layers[2].mixer, LayerMixer::kNone);
  EXPECT_FALSE(config.layers[1].has_mlp);
  EXPECT_TRUE(config.layers[2].has_mlp);
  EXPECT_FALSE(config.layers[1].use_rope);
  EXPECT_EQ(config.mamba_n_heads, 4);
  EXPECT_EQ(config.mamba_d_head, 8);
  EXPECT_EQ(config.mamba_n_groups, 2);
}

TEST_F(GgufHybridTest, Mamba2HasNoHeads) {
  const ModelConfig config = Load(File("mamba2", {}, {0}, 0));
  EXPECT_EQ(config.num_attention_heads, 0);
  EXPECT_EQ(config.layers[0].mixer, LayerMixer::kMamba2);
  EXPECT_FALSE(config.layers[0].has_mlp);
}

TEST_F(GgufHybridTest, AttentionOfGraniteRotatesOnlyIfTheFileSaysSo) {
  EXPECT_FALSE(Load(File("granitehybrid", {0, 2, 0}, {48})).layers[1].use_rope);
  GgufBuilder file = File("granitehybrid", {0, 2, 0}, {48});
  file.Bool("granitehybrid.rope.scaling.finetuned", true);
  EXPECT_TRUE(Load(file).layers[1].use_rope);
}

TEST_F(GgufHybridTest, MalformedLayersAreRejectedByName) {
  ExpectError(File("granitehybrid", {}, {48}), "granitehybrid.attention.head_count_kv: must be an array");
  ExpectError(File("granitehybrid", {0, 2}, {48}), "granitehybrid.attention.head_count_kv: fewer entries");
  ExpectError(File("granitehybrid", {1, 2, 0}, {48}), "values that differ between layers are not supported");
  ExpectError(File("nemotron_h", {0, 2, 0}, {0, 48, 48}), "layer 1 has both attention and an MLP");
  ExpectError(File("mamba2", {}, {0}, 0, 33), "mamba2.ssm.inner_size: not a multiple of ssm.time_step_rank 4 (33)");
  ExpectError(File("lfm2", {0, 2, 0}, {48}), "lfm2.shortconv.l_cache: missing");
}

}  // namespace
}  // namespace vllm
