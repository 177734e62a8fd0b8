#include "engine/model_loader/hf/hf_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using nlohmann::json;

json Base() {
  return json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 64,
    "intermediate_size": 172, "num_hidden_layers": 5, "num_attention_heads": 8, "num_key_value_heads": 4,
    "head_dim": 8, "max_position_embeddings": 2048, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
    "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": true,
    "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2, "sliding_window": 128, "rope_scaling": null})");
}

ModelConfig Load(const std::string& text, const std::string& generation = "") {
  TempDirectory directory;
  directory.Write("config.json", text);
  if (!generation.empty()) directory.Write("generation_config.json", generation);
  return LoadModelConfig(directory.path());
}

std::string ErrorOf(const std::string& text, const std::string& generation = "") {
  return MessageOf<ModelError>([&] { Load(text, generation); });
}

json With(const char* name, const json& value) {
  json config = Base();
  config[name] = value;
  return config;
}

json Without(const char* name) {
  json config = Base();
  config.erase(name);
  return config;
}

TEST(HfConfigTest, FieldsAreRead) {
  ModelConfig config = Load(Base().dump());
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.vocab_size, 512);
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.intermediate_size, 172);
  EXPECT_EQ(config.num_hidden_layers, 5);
  EXPECT_EQ(config.num_attention_heads, 8);
  EXPECT_EQ(config.num_key_value_heads, 4);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.max_position_embeddings, 2048);
  EXPECT_EQ(config.max_model_len, 2048);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.checkpoint_dtype, kernels::DType::kBFloat16);
  EXPECT_EQ(config.dtype, kernels::DType::kBFloat16);
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(config.eos_token_ids, (std::vector<int32_t>{2}));
  EXPECT_EQ(config.sliding_window, 128);
}

TEST(HfConfigTest, AbsentFieldsGetDefaults) {
  json config = Base();
  for (const char* name :
       {"num_key_value_heads", "head_dim", "rms_norm_eps", "rope_theta", "attention_bias", "mlp_bias",
        "tie_word_embeddings", "torch_dtype", "bos_token_id", "eos_token_id", "sliding_window"}) {
    config.erase(name);
  }
  ModelConfig loaded = Load(config.dump());
  EXPECT_EQ(loaded.num_key_value_heads, 8);
  EXPECT_EQ(loaded.head_dim, 8);
  EXPECT_EQ(loaded.rms_norm_eps, 1e-6);
  EXPECT_EQ(loaded.rope_theta, 10000.0);
  EXPECT_FALSE(loaded.tie_word_embeddings);
  EXPECT_EQ(loaded.checkpoint_dtype, kernels::DType::kFloat32);
  EXPECT_FALSE(loaded.bos_token_id);
  EXPECT_TRUE(loaded.eos_token_ids.empty());
  EXPECT_FALSE(loaded.sliding_window);
}

TEST(HfConfigTest, MissingRequiredFieldsAreNamed) {
  for (const char* name : {"architectures", "model_type", "vocab_size", "hidden_size", "intermediate_size",
                           "num_hidden_layers", "num_attention_heads", "max_position_embeddings"}) {
    EXPECT_NE(ErrorOf(Without(name).dump()).find(std::string(": ") + name + ": missing"), std::string::npos) << name;
    EXPECT_NE(ErrorOf(With(name, nullptr).dump()).find(std::string(": ") + name + ": missing"), std::string::npos);
  }
}

TEST(HfConfigTest, InvalidValuesAreRejectedWithTheirField) {
  const char* sizes[] = {"vocab_size",          "hidden_size",         "intermediate_size", "num_hidden_layers",
                         "num_attention_heads", "num_key_value_heads", "head_dim",          "max_position_embeddings",
                         "sliding_window"};
  for (const char* name : sizes) {
    for (const json& bad : {json("8"), json(true), json::array({8}), json::object(), json(8.0), json(0), json(-8),
                            json(uint64_t{1} << 40), json(~uint64_t{0})}) {
      std::string message = ErrorOf(With(name, bad).dump());
      EXPECT_TRUE(message.starts_with("config.json /")) << message;
      EXPECT_NE(message.find(std::string(": ") + name + ": "), std::string::npos) << name << bad << message;
      if (bad.is_number()) {
        EXPECT_TRUE(message.ends_with(std::string("(").append(bad.dump()).append(")"))) << message;
      }
    }
  }
  for (const char* name : {"rms_norm_eps", "rope_theta"}) {
    for (const json& bad : {json("1"), json(false), json(0), json(0.0), json(-1e-6), json(1e300)}) {
      EXPECT_NE(ErrorOf(With(name, bad).dump()).find(std::string(": ") + name + ": "), std::string::npos)
          << name << bad;
    }
  }
  for (const char* name : {"tie_word_embeddings", "attention_bias", "mlp_bias", "use_sliding_window"}) {
    for (const json& bad : {json("true"), json(1), json::array()}) {
      EXPECT_NE(ErrorOf(With(name, bad).dump()).find(std::string(": ") + name + ": not true or false"),
                std::string::npos);
    }
  }
  for (const char* name : {"bos_token_id", "eos_token_id"}) {
    for (const json& bad : {json("2"), json(-1), json(512), json(2.5), json::array({1, -1}), json::array({1, 512}),
                            json::array({"1"}), json(~uint64_t{0}), json::array({~uint64_t{0}})}) {
      EXPECT_NE(ErrorOf(With(name, bad).dump()).find(std::string(": ") + name + ": "), std::string::npos)
          << name << bad;
    }
  }
  EXPECT_NE(
      ErrorOf(With("torch_dtype", "int8").dump()).find("torch_dtype: not float32, float16 or bfloat16 (\"int8\")"),
      std::string::npos);
  EXPECT_NE(ErrorOf(With("torch_dtype", 16).dump()).find("torch_dtype: not a string (16)"), std::string::npos);
  EXPECT_NE(ErrorOf(With("architectures", json::array()).dump()).find("architectures: "), std::string::npos);
  EXPECT_NE(ErrorOf(With("architectures", "Llama").dump()).find("architectures: "), std::string::npos);
  EXPECT_NE(
      ErrorOf(With("quantization_config", json::object()).dump()).find("quantization_config.quant_method: missing"),
      std::string::npos);
}

TEST(HfConfigTest, InvalidJsonNumbersAreReportedWithTheirField) {
  for (const char* name : {"rope_theta", "rms_norm_eps", "vocab_size", "head_dim"}) {
    for (const char* bad : {"nan", "+Infinity", "--Infinity", "NaN1", "1e999"}) {
      std::string text = With(name, "@").dump();
      text.replace(text.find("\"@\""), 3, bad);
      std::string message = ErrorOf(text);
      EXPECT_NE(message.find(std::string(": ") + name + ": not valid JSON at byte "), std::string::npos) << message;
    }
  }
}

// Python's json module writes NaN and infinity as NaN, Infinity and -Infinity.
TEST(HfConfigTest, NaNAndInfinityAreRejectedWithTheirField) {
  const std::pair<const char*, const char*> values[] = {{"NaN", "nan"}, {"Infinity", "inf"}, {"-Infinity", "-inf"}};
  for (const auto& [text, shown] : values) {
    for (const char* name : {"rope_theta", "rms_norm_eps", "head_dim"}) {
      std::string config = With(name, "@").dump();
      config.replace(config.find("\"@\""), 3, text);
      const std::string message = ErrorOf(config);
      EXPECT_NE(message.find(std::string(": ") + name + ": "), std::string::npos) << message;
      EXPECT_NE(message.find(std::string("(") + shown + ")"), std::string::npos) << message;
    }
    const std::string message =
        ErrorOf(Base().dump(), std::string("{\"repetition_penalty\": ") + text + ", \"eos_token_id\": 3}");
    EXPECT_NE(message.find("generation_config.json"), std::string::npos) << message;
    EXPECT_NE(message.find(std::string("repetition_penalty: outside 0 to 1.79769e+308 (") + shown), std::string::npos)
        << message;
    std::string config = With("rope_scaling", {{"type", "linear"}, {"factor", "@"}}).dump();
    config.replace(config.find("\"@\""), 3, text);
    const std::string scaling = ErrorOf(config);
    EXPECT_NE(scaling.find("rope_scaling.factor: outside 0 to 1e+06"), std::string::npos) << scaling;
  }
}

TEST(HfConfigTest, NaNAndInfinityInUnusedFieldsAndStringsAreAccepted) {
  std::string text = With("time_step_limit", "@").dump();
  text.replace(text.find("\"@\""), 3, "[0.0, Infinity, -Infinity, NaN]");
  EXPECT_EQ(Load(text).vocab_size, 512);
  const std::string message = ErrorOf(With("hidden_act", json::array({"NaN", "Infinity"})).dump());
  EXPECT_NE(message.find("hidden_act: not a string (a list of length 2)"), std::string::npos) << message;
}

TEST(HfConfigTest, HeadCountsThatDoNotDivideAndInvalidHeadSizesAreRejected) {
  EXPECT_NE(ErrorOf(With("num_key_value_heads", 3).dump()).find("num_key_value_heads: does not divide"),
            std::string::npos);
  json config = Without("head_dim");
  config["hidden_size"] = 66;
  EXPECT_NE(ErrorOf(config.dump()).find("num_attention_heads: does not divide hidden_size 66 (8)"), std::string::npos);
  EXPECT_NE(ErrorOf(With("head_dim", 7).dump()).find("head_dim: not even (7)"), std::string::npos);
  config["hidden_size"] = 1 << 20;
  EXPECT_NE(ErrorOf(config.dump()).find("hidden_size: divided by num_attention_heads must be at most 65536 (1048576)"),
            std::string::npos);
}

TEST(HfConfigTest, DtypeIsReadInBothSpellings) {
  json config = Without("torch_dtype");
  config["dtype"] = "float16";
  EXPECT_EQ(Load(config.dump()).dtype, kernels::DType::kFloat16);
  EXPECT_EQ(Load(With("torch_dtype", "torch.float32").dump()).dtype, kernels::DType::kFloat32);
}

TEST(HfConfigTest, SlidingWindowCanBeDisabled) {
  EXPECT_FALSE(Load(With("use_sliding_window", false).dump()).sliding_window);
  EXPECT_TRUE(Load(With("use_sliding_window", true).dump()).sliding_window);
  EXPECT_FALSE(Load(With("sliding_window", nullptr).dump()).sliding_window);
}

TEST(HfConfigTest, RopeScalingTypesAreRead) {
  auto load = [](const char* text) { return Load(With("rope_scaling", json::parse(text)).dump()); };
  ModelConfig linear = load(R"({"type":"linear","factor":4})");
  EXPECT_EQ(linear.rope_scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(linear.rope_scaling.factor, 4.0);
  EXPECT_EQ(linear.max_model_len, 8192);
  ModelConfig dynamic = load(R"({"rope_type":"dynamic","factor":2.0})");
  EXPECT_EQ(dynamic.rope_scaling.kind, RopeScaling::Kind::kDynamic);
  EXPECT_EQ(dynamic.rope_scaling.original_max_position_embeddings, 2048);
  ModelConfig llama3 = load(
      R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":512})");
  EXPECT_EQ(llama3.rope_scaling.kind, RopeScaling::Kind::kLlama3);
  EXPECT_EQ(llama3.rope_scaling.original_max_position_embeddings, 512);
  EXPECT_EQ(llama3.max_model_len, 2048);
  ModelConfig yarn = load(
      R"({"type":"yarn","factor":4.0,"original_max_position_embeddings":1024,"beta_fast":16,"attention_factor":1.5,"truncate":false})");
  EXPECT_EQ(yarn.rope_scaling.kind, RopeScaling::Kind::kYarn);
  EXPECT_EQ(yarn.rope_scaling.beta_fast, 16.0);
  EXPECT_EQ(yarn.rope_scaling.beta_slow, 1.0);
  EXPECT_EQ(yarn.rope_scaling.attention_factor, 1.5);
  EXPECT_FALSE(yarn.rope_scaling.truncate);
  EXPECT_EQ(yarn.max_model_len, 4096);
  EXPECT_EQ(load(R"({"rope_type":"default"})").rope_scaling.kind, RopeScaling::Kind::kNone);
}

TEST(HfConfigTest, RopeParametersOfTransformers5AreRead) {
  json config = Without("rope_theta");
  config.erase("rope_scaling");
  config["rope_parameters"] = {{"rope_theta", 5e5}, {"rope_type", "linear"}, {"factor", 2.0}};
  ModelConfig loaded = Load(config.dump());
  EXPECT_EQ(loaded.rope_theta, 5e5);
  EXPECT_EQ(loaded.rope_scaling.kind, RopeScaling::Kind::kLinear);
  config["rope_parameters"] = {{"rope_theta", 1e6}};
  EXPECT_EQ(Load(config.dump()).rope_scaling.kind, RopeScaling::Kind::kNone);
  config["rope_parameters"] = {{"full_attention", {{"rope_theta", 1e6}}}};
  EXPECT_NE(ErrorOf(config.dump()).find("rope_parameters.full_attention: "), std::string::npos);
}

TEST(HfConfigTest, InvalidRopeScalingIsRejectedWithTheReason) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"longrope","factor":2})", "rope_scaling.short_factor: missing"},
      {R"({"type":"longrope","short_factor":[1,1,1,1],"long_factor":[1,1,1]})",
       "must have 4 values, one per rotary pair"},
      {R"({"type":"longrope","short_factor":[1,1,0,1]})", "not a number above 0 and at most 1e+06 (0)"},
      {R"({"type":"longrope","short_factor":7})", "rope_scaling.short_factor: not a list (7)"},
      {R"({"type":"longrope","short_factor":[1,1,1,1],"long_factor":[1,1,1,1],"original_max_position_embeddings":1})",
       "rope_scaling.original_max_position_embeddings: not above 1"},
      {R"({"type":"ntk"})", "rope_scaling.type: unknown scaling type (ntk; known: "},
      {R"({"rope_type":"su"})", "(su; known: "},
      {R"({"factor":2})", "rope_scaling.rope_type: missing"},
      {R"({"type":3})", "rope_scaling.type: not a string (3)"},
      {R"({"type":"linear"})", "rope_scaling.factor: missing"},
      {R"({"type":"linear","factor":0})", "rope_scaling.factor: not above 0 (0)"},
      {R"({"type":"linear","factor":-1.5})", "rope_scaling.factor: outside 0 to 1e+06 (-1.5)"},
      {R"({"type":"linear","factor":"2"})", "rope_scaling.factor: not a number (\"2\")"},
      {R"({"type":"llama3","factor":8})", "rope_scaling.original_max_position_embeddings: missing"},
      {R"({"type":"llama3","factor":8,"original_max_position_embeddings":8,"low_freq_factor":4,"high_freq_factor":4})",
       "rope_scaling.high_freq_factor: not above low_freq_factor (4)"},
      {R"({"type":"yarn","factor":8,"beta_fast":0})", "rope_scaling.beta_fast: not above 0 (0)"},
      {R"({"type":"yarn","factor":8,"original_max_position_embeddings":0})",
       "rope_scaling.original_max_position_embeddings: outside 1 to 16777216 (0)"},
      {R"([1])", "rope_scaling: not an object (a list of length 1)"},
      {R"({"type":"linear","factor":2,"partial_rotary_factor":0.5})", "rope_scaling.partial_rotary_factor: "},
  };
  for (auto [scaling, message] : cases) {
    std::string got = ErrorOf(With("rope_scaling", json::parse(scaling)).dump());
    EXPECT_NE(got.find(message), std::string::npos) << scaling << " -> " << got;
  }
}

TEST(HfConfigTest, EosIdsOfBothFilesAreMergedAndThoseOfConfigJsonComeFirst) {
  json config = With("eos_token_id", json::array({9, 2}));
  EXPECT_EQ(Load(config.dump(), R"({"eos_token_id":[2,1,9,3]})").eos_token_ids, (std::vector<int32_t>{9, 2, 1, 3}));
  EXPECT_EQ(Load(Without("eos_token_id").dump(), R"({"eos_token_id":7})").eos_token_ids, (std::vector<int32_t>{7}));
  EXPECT_EQ(Load(Base().dump(), R"({"eos_token_id":null})").eos_token_ids, (std::vector<int32_t>{2}));
  EXPECT_NE(ErrorOf(Base().dump(), R"({"eos_token_id":512})").find("eos_token_id: outside 0 to 511 (512)"),
            std::string::npos);
}

TEST(HfConfigTest, GenerationDefaultsAreReadAndChecked) {
  TempDirectory directory;
  EXPECT_FALSE(LoadGenerationConfig(directory.path()).temperature);
  directory.Write("generation_config.json",
                  R"({"do_sample":true,"temperature":0.6,"top_p":0.9,"top_k":20,"min_p":0,"repetition_penalty":1.05,
                   "max_new_tokens":64,"eos_token_id":[5,6],"pad_token_id":-1})");
  GenerationConfig config = LoadGenerationConfig(directory.path());
  EXPECT_EQ(config.do_sample, true);
  EXPECT_EQ(config.temperature, 0.6);
  EXPECT_EQ(config.top_p, 0.9);
  EXPECT_EQ(config.top_k, 20);
  EXPECT_EQ(config.min_p, 0.0);
  EXPECT_EQ(config.repetition_penalty, 1.05);
  EXPECT_EQ(config.max_new_tokens, 64);
  EXPECT_EQ(config.eos_token_ids, (std::vector<int32_t>{5, 6}));
  for (const char* bad : {R"({"temperature":-1})", R"({"temperature":"hot"})", R"({"top_p":0})", R"({"top_p":1.5})",
                          R"({"top_k":-2})", R"({"top_k":1.5})", R"({"min_p":2})", R"({"repetition_penalty":0})",
                          R"({"max_new_tokens":0})", R"({"do_sample":1})", R"({"eos_token_id":-1})", "[]", "3", ""}) {
    directory.Write("generation_config.json", bad);
    std::string message = MessageOf<ModelError>([&] { LoadGenerationConfig(directory.path()); });
    EXPECT_TRUE(message.starts_with("generation_config.json /")) << bad << message;
  }
}

TEST(HfConfigTest, MissingAndMalformedFilesAreRejected) {
  TempDirectory directory;
  EXPECT_NE(MessageOf<ModelError>([&] { LoadModelConfig(directory.path()); }), "");
  std::filesystem::create_directory(directory.path() + "/config.json");
  EXPECT_NE(MessageOf<ModelError>([&] { LoadModelConfig(directory.path()); }).find("not a regular file"),
            std::string::npos);
  EXPECT_NE(ErrorOf(std::string(200000, '[')).find("nested too deeply (limit 64)"), std::string::npos);
  EXPECT_NE(ErrorOf(Base().dump() + std::string(1, '\0')).find("zero byte"), std::string::npos);
  EXPECT_NE(ErrorOf("[]").find("not an object"), std::string::npos);
}

TEST(HfConfigTest, FilesTruncatedAtAnyByteAreRejected) {
  std::string original = Base().dump();
  for (size_t size = 0; size < original.size(); ++size) EXPECT_NE(ErrorOf(original.substr(0, size)), "") << size;
  std::string generation = R"({"temperature": 0.5, "eos_token_id": [2, 1]})";
  for (size_t size = 1; size < generation.size(); ++size) {
    EXPECT_NE(ErrorOf(original, generation.substr(0, size)), "") << size;
  }
}

TEST(HfConfigTest, FilesWithChangedBytesLoadOrAreRejected) {
  std::string original = With("rope_scaling", json::parse(R"({"type":"yarn","factor":4.0})")).dump();
  std::mt19937 random(3);
  TempDirectory directory;
  int num_loaded = 0;
  int num_rejected = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string text = original;
    for (uint32_t flips = 1 + static_cast<uint32_t>(random() % 3); flips > 0; --flips) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    directory.Write("config.json", text);
    try {
      LoadModelConfig(directory.path());
      ++num_loaded;
    } catch (const ModelError&) {
      ++num_rejected;
    }
  }
  EXPECT_GT(num_loaded, 0);
  EXPECT_GT(num_rejected, 0);
}

}  // namespace
}  // namespace vllm
