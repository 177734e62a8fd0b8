// Tests how the keys of GGUF files of Gemma 3n are read. The key names are those of llama.cpp's converter.
#include "engine/model_loader/gguf/gemma3n.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/gguf/config.h"
#include "tests/model_loader/gguf_builder.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using Type = GgufValueType;

// A file without tensors, of 25 layers.
GgufBuilder File() {
  GgufBuilder file;
  file.String("general.architecture", "gemma3n").Float("gemma3n.attention.layer_norm_rms_epsilon", 1e-6F);
  file.Int("gemma3n.context_length", 64).Int("gemma3n.embedding_length", 32).Int("gemma3n.block_count", 25);
  file.Int("gemma3n.attention.head_count", 4).Int("gemma3n.feed_forward_length", 48).Int("gemma3n.vocab_size", 10);
  file.Int("gemma3n.attention.sliding_window", 16).Float("gemma3n.rope.freq_base", 1e6F);
  file.Int("gemma3n.embedding_length_per_layer_input", 8);
  return file;
}

GgufBuilder Streams(uint32_t count, uint32_t active) {
  return File().Int("gemma3n.altup.num_inputs", count).Int("gemma3n.altup.active_idx", active);
}

ModelConfig Load(const GgufBuilder& file) {
  TempDirectory directory;
  return LoadGgufConfig(directory.Write("m.gguf", file.Build()));
}

void ExpectError(const GgufBuilder& file, const std::string& part) {
  const std::string error = MessageOf<ModelError>([&] { Load(file); });
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(GgufGemma3nTest, MissingKeysHaveTheValuesThatLlamaCppAssumes) {
  const ModelConfig config = Load(Streams(4, 1));
  EXPECT_EQ(config.architecture, "Gemma3nForCausalLM");
  EXPECT_EQ(config.altup_num_inputs, 4);
  EXPECT_EQ(config.altup_active_idx, 1);
  EXPECT_TRUE(config.altup_correct_scale);
  EXPECT_EQ(config.laurel_rank, 64);
  EXPECT_EQ(config.final_logit_softcapping, 30.0);
  EXPECT_EQ(config.hidden_size_per_layer_input, 8);
  EXPECT_EQ(config.vocab_size_per_layer_input, 10);
  EXPECT_EQ(config.rope_theta, 1e6);
  EXPECT_EQ(config.rope_local_theta, 1e4);
  EXPECT_EQ(config.layers[3].sliding_window, 16);
  EXPECT_EQ(config.layers[4].sliding_window, 0);
  EXPECT_NEAR(config.layers[9].gate_cutoff.value(), 1.6448536, 1e-6);
  EXPECT_FALSE(config.layers[10].gate_cutoff.has_value());
  EXPECT_EQ(config.layers[19].kv_source_layer, -1);
  EXPECT_EQ(config.layers[20].kv_source_layer, 18);
  EXPECT_EQ(config.layers[24].kv_source_layer, 19);
}

TEST(GgufGemma3nTest, LayersWithoutSparseGatesHaveAnInfiniteCutoff) {
  std::vector<float> cutoffs(25, -std::numeric_limits<float>::infinity());
  cutoffs[3] = -0.5F;
  cutoffs[7] = 1.5F;
  const ModelConfig config = Load(Streams(4, 0).Array("gemma3n.activation_sparsity_scale", Type::kFloat32, cutoffs));
  EXPECT_FALSE(config.layers[0].gate_cutoff.has_value());
  EXPECT_EQ(config.layers[3].gate_cutoff, -0.5);
  EXPECT_EQ(config.layers[7].gate_cutoff, 1.5);
}

TEST(GgufGemma3nTest, InvalidValuesAreRejectedWithTheirKey) {
  ExpectError(File(), "gemma3n.altup.num_inputs: missing");
  ExpectError(Streams(1, 0), "gemma3n.altup.num_inputs: outside 2 to 16 (1)");
  ExpectError(Streams(17, 0), "gemma3n.altup.num_inputs: outside 2 to 16 (17)");
  ExpectError(Streams(4, 4), "gemma3n.altup.active_idx: outside 0 to 3 (4)");
  ExpectError(Streams(4, 0).Int("gemma3n.attention.shared_kv_layers", 25),
              "gemma3n.attention.shared_kv_layers: a shared");
  ExpectError(Streams(4, 0).Int("gemma3n.attention.shared_kv_layers", 26), "outside 0 to 25 (26)");
  ExpectError(Streams(4, 0).Array<float>("gemma3n.activation_sparsity_scale", Type::kFloat32, {1.0F}),
              "gemma3n.activation_sparsity_scale: fewer entries than block_count");
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), 11.0F}) {
    ExpectError(Streams(4, 0).Array("gemma3n.activation_sparsity_scale", Type::kFloat32, std::vector<float>(25, bad)),
                "gemma3n.activation_sparsity_scale: value of layer 0");
  }
  GgufBuilder file = Streams(4, 0);
  file.Tensor("token_embd.weight", {32, 10}, 1, std::string(640, 'x'));
  ExpectError(file, "tensor per_layer_token_embd.weight: missing");
}

}  // namespace
}  // namespace vllm
