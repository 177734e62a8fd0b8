// Tests quantization_config in config.json: the fields of each method, the errors, and which layers the lists of names
// select.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/config/errors.h"
#include "engine/model_loader/quantization/config_parser.h"
#include "engine/model_loader/quantization/targets.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using nlohmann::json;

QuantizationConfig Read(const json& quantization, const char* name = "quantization_config") {
  const json config = {{name, quantization}};
  return ReadQuantization(ConfigFields(config, "config.json"));
}

std::string ErrorOf(const json& quantization) {
  return MessageOf<ModelError>([&] { Read(quantization); });
}

json Gptq() { return {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}, {"desc_act", true}, {"sym", true}}; }
json Awq() {
  return {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}, {"version", "gemm"}, {"zero_point", true}};
}
json Compressed() {
  return json::parse(R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
    "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": null, "weights":
      {"num_bits": 4, "type": "int", "symmetric": true, "strategy": "group", "group_size": 128, "actorder": "group"}}}})");
}
json Float8() { return {{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}, {"weight_block_size", {128, 64}}}; }

json Nvfp4() {
  return json::parse(R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "ignore": ["lm_head"],
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "symmetric": true,
      "strategy": "tensor_group", "group_size": 16}}}})");
}
json ModelOpt() {
  return {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}, {"ignore", {"lm_head", "model.l*.x"}}};
}
json BitsAndBytes() {
  return {{"quant_method", "bitsandbytes"},
          {"load_in_4bit", true},
          {"load_in_8bit", false},
          {"bnb_4bit_quant_storage", "uint8"}};
}
json AutoRound() {
  return {{"quant_method", "intel/auto-round"},
          {"packing_format", "auto_round:auto_gptq"},
          {"bits", 4},
          {"group_size", 128},
          {"sym", true},
          {"data_type", "int"},
          {"extra_config", {{"a", {{"bits", 4}, {"group_size", 128}}}, {"b", {{"bits", 16}}}}}};
}
json Hqq() {
  return json::parse(
      R"({"quant_method": "hqq", "skip_modules": ["lm_head"], "quant_config": {"scale_quant_params": null,
    "weight_quant_params": {"nbits": 4, "group_size": 64, "axis": 1, "view_as_float": false}}})");
}

json With(json object, const std::string& pointer, const json& value) {
  object[json::json_pointer(pointer)] = value;
  return object;
}

TEST(QuantizationConfigTest, NoQuantizationConfigMeansNoQuantization) {
  EXPECT_EQ(ReadQuantization(ConfigFields(json::object(), "config.json")).method, QuantizationMethod::kNone);
  EXPECT_EQ(Read(nullptr).method, QuantizationMethod::kNone);
}

TEST(QuantizationConfigTest, GptqFieldsAreRead) {
  const QuantizationConfig config = Read(Gptq());
  EXPECT_EQ(config.method, QuantizationMethod::kGptq);
  ASSERT_EQ(config.groups.size(), 1u);
  EXPECT_EQ(config.groups[0].scheme.bits, 4);
  EXPECT_EQ(config.groups[0].scheme.group_size, 128);
  EXPECT_FALSE(config.gptq_v2);
  EXPECT_TRUE(Read(With(Gptq(), "/checkpoint_format", "gptq_v2")).gptq_v2);
  EXPECT_EQ(Read(With(Gptq(), "/group_size", -1)).groups[0].scheme.group_size, -1);
}

TEST(QuantizationConfigTest, AwqFieldsAreReadInBothSpellings) {
  EXPECT_EQ(Read(Awq()).groups.at(0).scheme.group_size, 128);
  const json old = {{"quant_method", "awq"}, {"w_bit", 4}, {"q_group_size", 64}, {"version", "GEMM"}};
  EXPECT_EQ(Read(old).groups.at(0).scheme.group_size, 64);
}

TEST(QuantizationConfigTest, CompressedTensorsConfigIsReadUnderBothNames) {
  for (const char* name : {"quantization_config", "compression_config"}) {
    const QuantizationConfig config = Read(Compressed(), name);
    EXPECT_EQ(config.method, QuantizationMethod::kCompressedTensors);
    ASSERT_EQ(config.groups.size(), 1u);
    EXPECT_TRUE(config.groups[0].targets.all);
    EXPECT_TRUE(config.groups[0].scheme.packed);
    EXPECT_TRUE(config.groups[0].scheme.symmetric);
    EXPECT_EQ(config.groups[0].scheme.bits, 4);
    EXPECT_EQ(config.ignored.names, std::vector<std::string>{"lm_head"});
  }
}

TEST(QuantizationConfigTest, InputsWithOneScalePerTokenAreRecognized) {
  const auto has_scale_per_token = [](const json& inputs) {
    const json config = With(Compressed(), "/config_groups/group_0/input_activations", inputs);
    return Read(config).groups.at(0).scheme.has_scale_per_token;
  };
  const json inputs = {{"num_bits", 8}, {"type", "int"}, {"symmetric", true}, {"strategy", "token"}, {"dynamic", true}};
  EXPECT_TRUE(has_scale_per_token(inputs));
  EXPECT_FALSE(has_scale_per_token(nullptr));
  EXPECT_FALSE(has_scale_per_token(With(inputs, "/num_bits", 4)));
  EXPECT_FALSE(has_scale_per_token(With(inputs, "/type", "float")));
  EXPECT_FALSE(has_scale_per_token(With(inputs, "/symmetric", false)));
  EXPECT_FALSE(has_scale_per_token(With(inputs, "/strategy", "tensor")));
  EXPECT_FALSE(has_scale_per_token(With(inputs, "/dynamic", false)));
  const json local = {{"num_bits", 4}, {"type", "float"}, {"dynamic", "local"}};
  EXPECT_FALSE(has_scale_per_token(local));
}

TEST(QuantizationConfigTest, CompressedTensorsGroupsMayHaveTheirOwnFormat) {
  json config = Compressed();
  config["format"] = "mixed-precision";
  EXPECT_NE(ErrorOf(config).find("format: not supported (\"mixed-precision\")"), std::string::npos);
  config.erase("format");
  EXPECT_NE(ErrorOf(config).find("format: not supported (missing)"), std::string::npos) << ErrorOf(config);
  config["config_groups"]["group_0"]["format"] = "pack-quantized";
  EXPECT_TRUE(Read(config).groups.at(0).scheme.packed);
}

TEST(QuantizationConfigTest, Float8FieldsAreRead) {
  const QuantizationConfig config = Read(With(Float8(), "/modules_to_not_convert", {"lm_head"}));
  EXPECT_EQ(config.method, QuantizationMethod::kFp8);
  EXPECT_TRUE(config.groups.at(0).scheme.is_float);
  EXPECT_EQ(config.groups.at(0).scheme.block_rows, 128);
  EXPECT_EQ(config.groups.at(0).scheme.group_size, 64);
  EXPECT_EQ(config.ignored.names, std::vector<std::string>{"lm_head"});
  EXPECT_EQ(Read({{"quant_method", "fbgemm_fp8"}}).groups.at(0).scheme.block_rows, 1);
}

TEST(QuantizationConfigTest, TheErrorForAnUnsupportedMethodNamesTheMethod) {
  for (const char* method : {"quanto", "aqlm", "mxfp4", "torchao", ""}) {
    const std::string message = ErrorOf({{"quant_method", method}});
    EXPECT_NE(message.find("quantization_config.quant_method: "), std::string::npos);
    EXPECT_NE(message.find("(\"" + std::string(method) + "\")"), std::string::npos) << message;
  }
  EXPECT_NE(ErrorOf(json::object()).find("quant_method: missing"), std::string::npos);
  EXPECT_NE(ErrorOf({{"quant_method", 7}}).find("quant_method: not a string"), std::string::npos);
  EXPECT_NE(ErrorOf("gptq").find("quantization_config: not an object"), std::string::npos);
}

TEST(QuantizationConfigTest, InvalidFieldValuesAreRejected) {
  const json huge = ~uint64_t{0};
  const std::vector<std::tuple<json, std::string, std::vector<json>>> cases = {
      {Gptq(), "/bits", {1, 5, 16, -4, "4", 4.0, nullptr, huge}},
      {Gptq(), "/group_size", {0, -2, "128", 1.5, huge}},
      {Gptq(), "/sym", {1, "true"}},
      {Gptq(), "/desc_act", {1, "true"}},
      {Gptq(), "/checkpoint_format", {"marlin", 2}},
      {Gptq(), "/is_marlin_format", {true, 1}},
      {Gptq(), "/dynamic", {{{"-:lm_head", json::object()}}}},
      {Gptq(), "/modules_to_not_convert", {"lm_head", {1}, {"re:("}}},
      {Awq(), "/bits", {8, "4"}},
      {Awq(), "/version", {"gemv", 1}},
      {Awq(), "/zero_point", {false, 1}},
      {Float8(), "/fmt", {"e5m2", 1}},
      {Float8(), "/weight_block_size", {128, {128}, {0, 128}, {128, -1}, {1.5, 2}, {huge, 1}, {1, 2, 3}}},
      {Float8(), "/ignored_layers", {"x", {nullptr}}},
      {Compressed(), "/format", {"nvfp4-pack-quantized", "mxfp6-pack-quantized", "dense", 1}},
      {Compressed(), "/ignore", {"lm_head", json::array({json::array()}), {"re:[a"}}},
      {Compressed(), "/sparsity_config", {{{"format", "sparse-24-bitmask"}}}},
      {Compressed(), "/config_groups", {json(), json::array(), 1, {{"group_0", 1}}}},
      {Compressed(), "/config_groups/group_0/targets", {"Linear", {1}}},
      {Compressed(), "/config_groups/group_0/weights", {1, "int4"}},
      {Compressed(), "/config_groups/group_0/weights/num_bits", {2, 3, 16, "4", nullptr}},
      {Compressed(), "/config_groups/group_0/weights/type", {"float", "uint", 4}},
      {Compressed(), "/config_groups/group_0/weights/symmetric", {"yes", 0}},
      {Compressed(), "/config_groups/group_0/weights/strategy", {"tensor_group", "block", 1}},
      {Compressed(), "/config_groups/group_0/weights/group_size", {0, -7, "32", nullptr}},
      {Nvfp4(), "/config_groups/group_0/weights/num_bits", {8, "4", nullptr}},
      {Nvfp4(), "/config_groups/group_0/weights/type", {"int"}},
      {Nvfp4(), "/config_groups/group_0/weights/symmetric", {false}},
      {Nvfp4(), "/config_groups/group_0/weights/strategy", {"group", "channel"}},
      {Nvfp4(), "/config_groups/group_0/weights/group_size", {32, "16"}},
      {ModelOpt(), "/quant_algo", {"FP8", "W4A8_AWQ", 4, nullptr}},
      {ModelOpt(), "/group_size", {32, "16"}},
      {ModelOpt(), "/ignore", {"lm_head", {1}}},
      {BitsAndBytes(), "/load_in_4bit", {false, 1}},
      {BitsAndBytes(), "/load_in_8bit", {true}},
      {BitsAndBytes(), "/bnb_4bit_quant_storage", {"bfloat16", 8}},
      {AutoRound(), "/packing_format", {"auto_round:exllamav2", "auto_round", nullptr}},
      {AutoRound(), "/bits", {5, 16, nullptr}},
      {AutoRound(), "/data_type", {"mx_fp", 1}},
      {AutoRound(), "/extra_config/a", {{{"bits", 8}}, {{"group_size", 32}}, {{"sym", false}}, 7}},
      {Hqq(), "/quant_config/weight_quant_params/nbits", {1, 3, "4"}},
      {Hqq(), "/quant_config/weight_quant_params/axis", {0, 2, nullptr}},
      {Hqq(), "/quant_config/weight_quant_params/view_as_float", {true}},
      {Hqq(), "/quant_config/weight_quant_params", {nullptr, 1}},
      {Hqq(), "/quant_config/scale_quant_params", {{{"nbits", 8}}}},
  };
  for (const auto& [base, pointer, values] : cases) {
    EXPECT_NO_THROW(Read(base));
    const std::string field = pointer.substr(pointer.rfind('/') + 1);
    for (const json& value : values) {
      const std::string message = ErrorOf(With(base, pointer, value));
      EXPECT_NE(message.find("config.json: quantization_config"), std::string::npos) << pointer << " " << value;
    }
  }
}

TEST(QuantizationConfigTest, AutoRoundMeansGptqOrAwq) {
  EXPECT_EQ(Read(AutoRound()).method, QuantizationMethod::kGptq);
  EXPECT_EQ(Read(With(AutoRound(), "/packing_format", "auto_round:auto_awq")).method, QuantizationMethod::kAwq);
  EXPECT_EQ(Read(With(With(AutoRound(), "/bits", 2), "/extra_config/a/bits", 2)).groups.at(0).scheme.bits, 2);
}

TEST(QuantizationConfigTest, ModelOptPatternsMatchWholeLayerNames) {
  const QuantizationConfig config = Read(ModelOpt());
  EXPECT_EQ(config.method, QuantizationMethod::kModelOpt);
  EXPECT_TRUE(Matches(config.ignored, "lm_head"));
  EXPECT_TRUE(Matches(config.ignored, "model.layers.3.x"));
  EXPECT_FALSE(Matches(config.ignored, "model.layers.3.xy"));
  EXPECT_FALSE(Matches(config.ignored, "modelxlayers.3.x"));
}

TEST(QuantizationConfigTest, HfQuantConfigIsReadIfItNamesAnAlgorithm) {
  const TempDirectory directory;
  EXPECT_EQ(ReadHfQuantConfig(directory.path()).method, QuantizationMethod::kNone);
  const auto write = [&](const json& content) {
    std::ofstream(directory.path() + "/hf_quant_config.json") << content.dump();
  };
  write({{"quantization", {{"quant_algo", "NVFP4"}, {"group_size", 16}, {"exclude_modules", {"lm_head"}}}}});
  const QuantizationConfig config = ReadHfQuantConfig(directory.path());
  EXPECT_EQ(config.method, QuantizationMethod::kModelOpt);
  EXPECT_EQ(config.groups.at(0).scheme.float4, Float4Format::kNvfp4);
  EXPECT_EQ(config.ignored.names, std::vector<std::string>{"lm_head"});
  write({{"quantization", {{"quant_algo", nullptr}}}});
  EXPECT_EQ(ReadHfQuantConfig(directory.path()).method, QuantizationMethod::kNone);
  write({{"quantization", {{"quant_algo", "FP8"}}}});
  EXPECT_THROW(ReadHfQuantConfig(directory.path()), ModelError);
  write(json::array());
  EXPECT_THROW(ReadHfQuantConfig(directory.path()), ModelError);
}

TEST(QuantizationConfigTest, Mxfp4IsReadOnlyForGptOss) {
  const json mxfp4 = {{"quant_method", "mxfp4"}, {"modules_to_not_convert", {"model.layers.*.self_attn", "lm_head"}}};
  const json config = {{"model_type", "gpt_oss"}, {"quantization_config", mxfp4}};
  const QuantizationConfig read = ReadQuantization(ConfigFields(config, "config.json"));
  EXPECT_EQ(read.method, QuantizationMethod::kMxfp4);
  EXPECT_TRUE(read.groups.empty());
  EXPECT_NE(ErrorOf(mxfp4).find("mxfp4 is supported only with model_type gpt_oss"), std::string::npos);
}

TEST(QuantizationTargetsTest, NamesMatchWholePartsOfALayerName) {
  const QuantizationTargets targets{.all = false, .names = {"lm_head", "mlp.gate", "model.layers.1"}};
  for (const char* layer : {"lm_head", "model.lm_head", "model.layers.3.mlp.gate", "model.layers.1.self_attn.q_proj"}) {
    EXPECT_TRUE(Matches(targets, layer)) << layer;
  }
  for (const char* layer : {"lm_heads", "model.layers.3.mlp.gate_proj", "model.layers.11.mlp.up_proj", "head", ""}) {
    EXPECT_FALSE(Matches(targets, layer)) << layer;
  }
}

TEST(QuantizationTargetsTest, RegularExpressionsMatchFromTheBeginning) {
  const QuantizationTargets targets{.all = false, .names = {"re:model\\.layers\\.[02]\\..*proj", "re:.*lm_head"}};
  for (const char* layer :
       {"model.layers.0.self_attn.q_proj", "model.layers.2.mlp.up_proj.x", "lm_head", "x.lm_head"}) {
    EXPECT_TRUE(Matches(targets, layer)) << layer;
  }
  for (const char* layer : {"model.layers.1.self_attn.q_proj", "a.model.layers.0.q_proj", "model.layers.0.norm"}) {
    EXPECT_FALSE(Matches(targets, layer)) << layer;
  }
}

}  // namespace
}  // namespace vllm
