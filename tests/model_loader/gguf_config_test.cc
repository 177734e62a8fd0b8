#include "engine/model_loader/gguf/config.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/gguf/tokenizer.h"
#include "tests/model_loader/gguf_builder.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using Type = GgufValueType;

class GgufConfigTest : public testing::Test {
 protected:
  ModelConfig Load(const GgufBuilder& file) { return LoadGgufConfig(directory_.Write("m.gguf", file.Build())); }
  std::string ErrorOf(const GgufBuilder& file) {
    return MessageOf<ModelError>([&] { Load(file); });
  }

  TempDirectory directory_;
};

// A key that Sizes() writes.
struct Key {
  std::string name;
  bool required;
};
const std::vector<Key> kSizes = {
    {"context_length", true},      {"embedding_length", true},         {"block_count", true},
    {"feed_forward_length", true}, {"attention.head_count", true},     {"attention.head_count_kv", false},
    {"vocab_size", true},          {"attention.key_length", false},    {"rope.dimension_count", false},
    {"expert_count", false},       {"attention.sliding_window", false}};

// Builds a file without tensors. The key `changed` is missing if `value` is empty; otherwise it has that value.
GgufBuilder Sizes(const std::string& changed = "", Type type = Type::kUint32, const std::string& value = "") {
  GgufBuilder file;
  file.String("general.architecture", "llama");
  const auto add = [&](const std::string& name, uint32_t size) {
    if (name == changed && value.empty()) return;
    if (name == changed) {
      file.Pair("llama." + name, type, value);
    } else {
      file.Int("llama." + name, size);
    }
  };
  add("context_length", 64);
  add("embedding_length", 32);
  add("block_count", 2);
  add("feed_forward_length", 48);
  add("attention.head_count", 4);
  add("attention.head_count_kv", 2);
  add("vocab_size", 10);
  add("attention.key_length", 8);
  add("rope.dimension_count", 8);
  add("expert_count", 0);
  add("attention.sliding_window", 0);
  if (changed == "attention.layer_norm_rms_epsilon") {
    if (!value.empty()) file.Pair("llama." + changed, type, value);
  } else {
    file.Float("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  }
  return file;
}

TEST_F(GgufConfigTest, PoolingOfEmbeddingModelsIsRead) {
  EXPECT_FALSE(Load(Sizes()).pooler.is_from_files);
  const auto with = [&](uint32_t type) {
    GgufBuilder file = Sizes();
    file.Int("llama.pooling_type", type);
    return file;
  };
  EXPECT_EQ(Load(with(1)).pooler.types, std::vector{PoolingType::kMean});
  EXPECT_EQ(Load(with(2)).pooler.types, std::vector{PoolingType::kCls});
  EXPECT_EQ(Load(with(3)).pooler.types, std::vector{PoolingType::kLast});
  EXPECT_TRUE(Load(with(3)).pooler.is_from_files);
  EXPECT_FALSE(Load(with(0)).pooler.is_from_files);
  EXPECT_NE(ErrorOf(with(5)).find("llama.pooling_type"), std::string::npos);
}

TEST_F(GgufConfigTest, SizesAreRead) {
  const ModelConfig config = Load(Sizes());
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.max_position_embeddings, 64);
  EXPECT_EQ(config.max_model_len, 64);
  EXPECT_EQ(config.hidden_size, 32);
  EXPECT_EQ(config.num_hidden_layers, 2);
  EXPECT_EQ(config.intermediate_size, 48);
  EXPECT_EQ(config.num_attention_heads, 4);
  EXPECT_EQ(config.num_key_value_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocab_size, 10);
  EXPECT_EQ(config.rope_theta, 10000.0);
  EXPECT_FLOAT_EQ(static_cast<float>(config.rms_norm_eps), 1e-5F);
  EXPECT_EQ(config.layers.size(), 2U);
}

TEST_F(GgufConfigTest, InvalidSizesAreRejected) {
  for (const Key& key : kSizes) {
    const std::string name = "llama." + key.name;
    const auto expect_rejected = [&](Type type, const std::string& value) {
      const std::string message = ErrorOf(Sizes(key.name, type, value));
      // If two keys contradict each other, the error may name either.
      EXPECT_EQ(message.rfind("gguf file ", 0), 0U) << name << ": " << message;
      EXPECT_NE(message.find("llama."), std::string::npos) << message;
    };
    if (key.required) {
      EXPECT_NE(ErrorOf(Sizes(key.name)).find(name + ": missing"), std::string::npos) << name;
      expect_rejected(Type::kUint32, Raw<uint32_t>(0));
    } else {
      EXPECT_EQ(ErrorOf(Sizes(key.name)), "") << name;
    }
    expect_rejected(Type::kInt32, Raw<int32_t>(-1));
    expect_rejected(Type::kInt64, Raw(std::numeric_limits<int64_t>::min()));
    expect_rejected(Type::kUint64, Raw(std::numeric_limits<uint64_t>::max()));
    expect_rejected(Type::kInt64, Raw(std::numeric_limits<int64_t>::max()));
    expect_rejected(Type::kFloat32, Raw(8.0F));
    expect_rejected(Type::kFloat32, Raw(std::numeric_limits<float>::quiet_NaN()));
    expect_rejected(Type::kString, RawString("8"));
    expect_rejected(Type::kBool, Raw<uint8_t>(1));
    expect_rejected(Type::kArray, RawType(Type::kString) + Raw<uint64_t>(1) + RawString("8"));
  }
}

TEST_F(GgufConfigTest, InvalidFloatsAreRejectedWithTheirKey) {
  const std::string key = "attention.layer_norm_rms_epsilon";
  EXPECT_NE(ErrorOf(Sizes(key)).find("llama." + key + ": missing"), std::string::npos);
  for (const float value : {0.0F, -1.0F, 2.0F, std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    EXPECT_NE(ErrorOf(Sizes(key, Type::kFloat32, Raw(value))).find("llama." + key + ": "), std::string::npos) << value;
    EXPECT_NE(ErrorOf(Sizes().Float("llama.rope.freq_base", value == 2.0F ? -2.0F : value)).find("rope.freq_base: "),
              std::string::npos)
        << value;
  }
  EXPECT_NE(ErrorOf(Sizes(key, Type::kUint32, Raw<uint32_t>(1))).find("must be a float"), std::string::npos);
}

TEST_F(GgufConfigTest, InconsistentSizesAndOddHeadDimensionsAreRejected) {
  const auto four = Raw<uint32_t>(4);
  EXPECT_NE(ErrorOf(Sizes("attention.head_count_kv", Type::kUint32, Raw<uint32_t>(3))).find("does not divide"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Sizes("attention.key_length", Type::kUint32, Raw<uint32_t>(7))).find("head dimension is not even"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Sizes("rope.dimension_count", Type::kUint32, Raw<uint32_t>(10))).find("outside 2 to 8"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Sizes().Int("llama.attention.value_length", 4)).find("is 4 but must equal the head dimension"),
            std::string::npos);
  EXPECT_EQ(Load(Sizes("rope.dimension_count", Type::kUint32, four)).rotary_dim, 4);
}

TEST_F(GgufConfigTest, TheErrorForAnUnknownArchitectureListsTheKnownOnes) {
  GgufBuilder file;
  const std::string message = ErrorOf(file.String("general.architecture", "mam\x1b[31mba"));
  EXPECT_NE(message.find("unknown architecture (mam\\x1b[31mba)"), std::string::npos) << message;
  EXPECT_NE(ErrorOf(GgufBuilder()).find("general.architecture: missing"), std::string::npos);
  EXPECT_NE(ErrorOf(GgufBuilder().Int("general.architecture", 1)).find("must be a string"), std::string::npos);
}

TEST_F(GgufConfigTest, PerLayerSizesMustBeEqual) {
  const auto list = [](int32_t a, int32_t b) { return RawType(Type::kInt32) + Raw<uint64_t>(2) + Raw(a) + Raw(b); };
  EXPECT_EQ(Load(Sizes("feed_forward_length", Type::kArray, list(24, 24))).intermediate_size, 24);
  EXPECT_NE(ErrorOf(Sizes("feed_forward_length", Type::kArray, list(24, 32))).find("values that differ between layers"),
            std::string::npos);
}

TEST_F(GgufConfigTest, SlidingWindowsFollowTheArchitecturesPattern) {
  GgufBuilder file;
  file.String("general.architecture", "gemma3").Int("gemma3.context_length", 512).Int("gemma3.embedding_length", 32);
  file.Int("gemma3.block_count", 7).Int("gemma3.feed_forward_length", 48).Int("gemma3.attention.head_count", 4);
  file.Int("gemma3.vocab_size", 10).Float("gemma3.attention.layer_norm_rms_epsilon", 1e-6F);
  file.Int("gemma3.attention.sliding_window", 16).Float("gemma3.rope.freq_base", 1e6F);
  const ModelConfig config = Load(file);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(config.layers[i].sliding_window, i == 5 ? 0 : 16);
    EXPECT_EQ(config.layers[i].use_local_rope, i != 5);
  }
  EXPECT_EQ(config.rope_theta, 1e6);
  EXPECT_EQ(config.rope_local_theta, 10000.0);
  EXPECT_EQ(config.norm_offset, 0.0);
  EXPECT_EQ(config.query_pre_attn_scalar, 8.0);
}

TEST_F(GgufConfigTest, DTypeIsTheDominantMatrixTypeButFloat32BecomesFloat16WithBlockWeights) {
  EXPECT_EQ(Load(TinyGguf()).checkpoint_dtype, kernels::DType::kFloat32);
  GgufBuilder half = Sizes();
  half.Tensor("token_embd.weight", {32, 10}, 1, std::string(640, 'x'));
  half.Tensor("output_norm.weight", {32}, 0, std::string(128, 'x'));
  EXPECT_EQ(Load(half).checkpoint_dtype, kernels::DType::kFloat16);
  GgufBuilder blocks = Sizes();
  blocks.Tensor("token_embd.weight", {32, 10}, 8, std::string(340, 'x'));
  blocks.Tensor("blk.0.ffn_gate_inp.weight", {32, 2}, 0, std::string(256, 'x'));
  EXPECT_EQ(Load(blocks).checkpoint_dtype, kernels::DType::kFloat16);
}

TEST_F(GgufConfigTest, VocabSizeComesFromTheEmbedding) {
  GgufBuilder file = Sizes();
  file.Tensor("token_embd.weight", {32, 12}, 1, std::string(768, 'x'));
  EXPECT_EQ(Load(file).vocab_size, 12);
  file.Strings("tokenizer.ggml.tokens", {"a", "b"});
  EXPECT_NE(ErrorOf(file).find("tokenizer.ggml.tokens: must have 12 entries, one per embedding row (2)"),
            std::string::npos);
  GgufBuilder other = Sizes();
  other.Tensor("token_embd.weight", {16, 12}, 1, std::string(384, 'x'));
  EXPECT_NE(ErrorOf(other).find("token_embd.weight"), std::string::npos);
}

GgufBuilder Vocabulary() {
  GgufBuilder file;
  file.String("tokenizer.ggml.model", "gpt2").String("tokenizer.ggml.pre", "qwen2");
  file.Strings("tokenizer.ggml.tokens", {"a", "b", "<|im_end|>", "</s>", "<|eot_id|>"});
  file.Array<int32_t>("tokenizer.ggml.token_type", Type::kInt32, {1, 1, 3, 3, 1});
  file.Strings("tokenizer.ggml.merges", {"a b"});
  file.Int("tokenizer.ggml.bos_token_id", 0).Int("tokenizer.ggml.eos_token_id", 3);
  file.Int("tokenizer.ggml.padding_token_id", 0xFFFFFFFF).Bool("tokenizer.ggml.add_bos_token", true);
  return file;
}

GgufHeader Parse(const std::string& bytes) { return ParseGguf(std::as_bytes(std::span(bytes)), "x.gguf"); }

TEST(GgufTokenizerTest, TheVocabularyIsRead) {
  const std::string bytes = Vocabulary().Build();
  const GgufHeader header = Parse(bytes);
  const tokenizer::GgufVocabulary vocabulary = ReadGgufVocabulary(header.metadata);
  EXPECT_EQ(vocabulary.model, "gpt2");
  EXPECT_EQ(vocabulary.pre, "qwen2");
  EXPECT_EQ(vocabulary.tokens.size(), 5U);
  EXPECT_EQ(vocabulary.token_types.size(), 5U);
  EXPECT_EQ(vocabulary.merges, (std::vector<std::string_view>{"a b"}));
  EXPECT_EQ(vocabulary.eos_id, 3);
  EXPECT_EQ(vocabulary.pad_id, std::nullopt);
  EXPECT_EQ(vocabulary.add_bos, true);
  EXPECT_EQ(vocabulary.add_eos, std::nullopt);
}

TEST(GgufTokenizerTest, KnownEndOfTurnTokensAreStopIdsToo) {
  const std::string bytes = Vocabulary().Build();
  const GgufHeader header = Parse(bytes);
  // In this vocabulary "<|eot_id|>" is a normal token, so it is not a stop id.
  EXPECT_EQ(GgufStopIds(header.metadata, 5), (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(GgufBosId(header.metadata, 5), 0);
  EXPECT_NE(MessageOf<ModelError>([&] { GgufStopIds(header.metadata, 3); }), "");
}

TEST(GgufTokenizerTest, TheEndOfAHarmonyMessageIsNoStopId) {
  const auto stop_ids = [](const std::vector<std::string>& tokens) {
    GgufBuilder file;
    file.String("tokenizer.ggml.model", "gpt2").Strings("tokenizer.ggml.tokens", tokens);
    file.Array<int32_t>("tokenizer.ggml.token_type", Type::kInt32, {3, 3, 3});
    file.Int("tokenizer.ggml.eos_token_id", 1);
    const std::string bytes = file.Build();
    return GgufStopIds(Parse(bytes).metadata, 9);
  };
  EXPECT_EQ(stop_ids({"<|end|>", "<|return|>", "<|call|>"}), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(stop_ids({"<|end|>", "<|return|>", "x"}), (std::vector<int32_t>{1, 0}));
}

TEST(GgufTokenizerTest, ValuesOfWrongLengthOrTypeAreRejected) {
  const auto error = [](const GgufBuilder& file) {
    const std::string bytes = file.Build();
    const GgufHeader header = Parse(bytes);
    return MessageOf<ModelError>([&] { ReadGgufVocabulary(header.metadata); });
  };
  EXPECT_NE(error(Vocabulary().Array<float>("tokenizer.ggml.scores", Type::kFloat32, {1.0F}))
                .find("scores: must have 5 entries, one per token (1)"),
            std::string::npos);
  EXPECT_NE(error(Vocabulary().Array<float>("tokenizer.ggml.precompiled_charsmap", Type::kFloat32, {1.0F})), "");
  EXPECT_NE(error(Vocabulary().Int("tokenizer.ggml.add_eos_token", 1)), "");
  GgufBuilder numbers;
  numbers.String("tokenizer.ggml.model", "gpt2").Array<int32_t>("tokenizer.ggml.tokens", Type::kInt32, {1, 2});
  EXPECT_NE(error(numbers).find("must be an array of string (array of int32)"), std::string::npos);
}

TEST(GgufTokenizerTest, ChatTemplateIsTheUnnamedOneOrTheOneNamedDefault) {
  const auto origin = [](const GgufBuilder& file) {
    const std::string bytes = file.Build();
    const auto source = GgufChatTemplate(Parse(bytes).metadata);
    return source ? source->origin + "=" + source->text + " " + source->bos_token + " " + source->eos_token : "";
  };
  EXPECT_EQ(origin(Vocabulary()), "");
  EXPECT_EQ(origin(Vocabulary().String("tokenizer.chat_template", "T")), "tokenizer.chat_template=T a </s>");
  GgufBuilder named = Vocabulary();
  named.Strings("tokenizer.chat_templates", {"rag", "default"}).String("tokenizer.chat_template.rag", "R");
  named.String("tokenizer.chat_template.default", "D");
  EXPECT_EQ(origin(named), "tokenizer.chat_template.default=D a </s>");
}

}  // namespace
}  // namespace vllm
