#include "engine/model_loader/quantization/config_parser.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "engine/config/escape.h"
#include "engine/model_loader/json_file.h"
#include "engine/model_loader/quantization/targets.h"

namespace vllm {
namespace {

using nlohmann::json;

constexpr int64_t kMaxGroupSize = int64_t{1} << 24;
constexpr size_t kMaxConfigBytes = size_t{16} << 20;
constexpr size_t kMaxNames = 65536;
constexpr size_t kMaxGroups = 256;

// Appends the strings of list `name` to `names`. Does nothing if the list is absent.
void ReadNames(const ConfigFields& fields, const char* name, std::vector<std::string>& names) {
  if (!fields.Has(name)) return;
  const json& list = fields.At(name);
  if (!list.is_array() || list.size() > kMaxNames) fields.Reject(name, "not a list of at most 65536 names");
  for (const json& item : list) {
    if (!item.is_string()) fields.Reject(name, "not a list of names");
    names.push_back(item.get<std::string>());
    if (!IsTarget(names.back())) fields.Reject(name, "contains an invalid regular expression");
  }
}

int64_t ReadGroupSize(const ConfigFields& fields, const char* name) {
  const int64_t size = fields.Int(name, -1, kMaxGroupSize).value_or(-1);
  if (size == 0) fields.Reject(name, "must be -1 or above 0");
  return size;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

void ReadGptq(const ConfigFields& fields, QuantizationConfig& config) {
  QuantizationScheme scheme{.packed = true, .symmetric = false};
  scheme.bits = fields.RequiredInt("bits", 2, 8);
  if (scheme.bits > 4 && scheme.bits != 8) fields.Reject("bits", "not 2, 3, 4 or 8");
  scheme.group_size = ReadGroupSize(fields, "group_size");
  fields.Bool("desc_act");
  fields.Bool("sym");
  const std::string format = fields.String("checkpoint_format").value_or("gptq");
  if (format != "gptq" && format != "gptq_v2") fields.Reject("checkpoint_format", "not gptq or gptq_v2");
  if (fields.Bool("is_marlin_format").value_or(false)) fields.Reject("is_marlin_format", "not supported");
  if (fields.Has("dynamic") && !fields.At("dynamic").empty()) {
    fields.Reject("dynamic", "per-layer settings are not supported");
  }
  ReadNames(fields, "modules_to_not_convert", config.ignored.names);
  config.gptq_v2 = format == "gptq_v2";
  config.groups.push_back({{.all = true, .names = {}}, scheme});
}

void ReadAwq(const ConfigFields& fields, QuantizationConfig& config) {
  QuantizationScheme scheme{.bits = 4, .packed = true, .symmetric = false};
  const char* bits = fields.Has("bits") ? "bits" : "w_bit";
  if (fields.RequiredInt(bits, 1, 8) != 4) fields.Reject(bits, "not 4");
  scheme.group_size = ReadGroupSize(fields, fields.Has("group_size") ? "group_size" : "q_group_size");
  if (Lower(fields.String("version").value_or("gemm")) != "gemm") fields.Reject("version", "not gemm");
  if (!fields.Bool("zero_point").value_or(true)) fields.Reject("zero_point", "must be true");
  ReadNames(fields, "modules_to_not_convert", config.ignored.names);
  config.groups.push_back({{.all = true, .names = {}}, scheme});
}

// Rejects settings of a layer that differ from those of the model. Layers of 16 or more bits are not quantized.
void CheckAutoRoundLayer(const ConfigFields& layers, const char* name, const QuantizationScheme& scheme,
                         const std::optional<bool>& symmetric) {
  const ConfigFields layer = layers.Child(name);
  if (layer.Int("bits", 1, 32).value_or(scheme.bits) >= 16) return;
  const bool same = layer.Int("bits", 1, 32).value_or(scheme.bits) == scheme.bits &&
                    layer.Int("group_size", -1, kMaxGroupSize).value_or(scheme.group_size) == scheme.group_size &&
                    layer.String("data_type").value_or("int") == "int" &&
                    (!symmetric || layer.Bool("sym").value_or(*symmetric) == *symmetric);
  if (!same) layers.Fail(name, "settings that differ from those of the model are not supported");
}

// AutoRound stores its weights in the formats of AutoGPTQ or AutoAWQ.
void ReadAutoRound(const ConfigFields& fields, QuantizationConfig& config) {
  QuantizationScheme scheme{.packed = true, .symmetric = false};
  const std::string packing = fields.String("packing_format").value_or("missing");
  const bool is_gptq = packing == "auto_round:auto_gptq" || packing == "auto_round:gptq";
  if (!is_gptq && packing != "auto_round:auto_awq" && packing != "auto_round:awq") {
    fields.Reject("packing_format", "not auto_round:auto_gptq, auto_round:gptq, auto_round:auto_awq or auto_round:awq");
  }
  config.method = is_gptq ? QuantizationMethod::kGptq : QuantizationMethod::kAwq;
  scheme.bits = fields.RequiredInt("bits", 2, 8);
  if (is_gptq ? scheme.bits > 4 && scheme.bits != 8 : scheme.bits != 4) {
    fields.Reject("bits", is_gptq ? "not 2, 3, 4 or 8" : "not 4");
  }
  scheme.group_size = ReadGroupSize(fields, "group_size");
  if (fields.String("data_type").value_or("int") != "int") fields.Reject("data_type", "not int");
  const std::optional<bool> symmetric = fields.Bool("sym");
  if (fields.Has("extra_config")) {
    const ConfigFields layers = fields.Child("extra_config");
    if (fields.At("extra_config").size() > kMaxNames) fields.Reject("extra_config", "must have at most 65536 layers");
    for (const auto& [name, value] : fields.At("extra_config").items()) {
      if (value.is_null()) continue;
      CheckAutoRoundLayer(layers, name.c_str(), scheme, symmetric);
    }
  }
  ReadNames(fields, "modules_to_not_convert", config.ignored.names);
  config.groups.push_back({{.all = true, .names = {}}, scheme});
}

// Reads the numbers of rows and columns of a block.
void ReadBlock(const ConfigFields& fields, const char* name, QuantizationScheme& scheme) {
  const json& list = fields.At(name);
  const auto size = [](const json& x) { return x.is_number_integer() && x >= 1 && x <= kMaxGroupSize; };
  if (!list.is_array() || list.size() != 2 || !size(list[0]) || !size(list[1])) {
    fields.Reject(name, "not a list of two sizes from 1 to " + std::to_string(kMaxGroupSize));
  }
  scheme.block_rows = list[0].get<int64_t>();
  scheme.group_size = list[1].get<int64_t>();
}

void ReadFp8(const ConfigFields& fields, QuantizationConfig& config) {
  QuantizationScheme scheme{.is_float = true};
  if (fields.String("fmt").value_or("e4m3") != "e4m3") fields.Reject("fmt", "not e4m3");
  fields.String("activation_scheme");
  if (fields.Has("weight_block_size")) ReadBlock(fields, "weight_block_size", scheme);
  ReadNames(fields, "modules_to_not_convert", config.ignored.names);
  ReadNames(fields, "ignored_layers", config.ignored.names);
  config.groups.push_back({{.all = true, .names = {}}, scheme});
}

// Reads the scheme's `packed` and `float4`.
void ReadFormat(const ConfigFields& fields, const std::string& format, QuantizationScheme& scheme) {
  if (format == "nvfp4-pack-quantized") scheme.float4 = Float4Format::kNvfp4;
  if (format == "mxfp4-pack-quantized") scheme.float4 = Float4Format::kMxfp4;
  scheme.packed = scheme.float4 != Float4Format::kNone || format == "pack-quantized";
  if (!scheme.packed && format != "int-quantized" && format != "float-quantized" && format != "naive-quantized") {
    fields.Reject("format", "not supported");
  }
}

// Reads the weights of a scheme with E2M1 codes.
void ReadFloat4Weights(const ConfigFields& fields, QuantizationScheme& scheme) {
  const bool is_nvfp4 = scheme.float4 == Float4Format::kNvfp4;
  scheme.bits = fields.RequiredInt("num_bits", 1, 16);
  if (scheme.bits != 4) fields.Reject("num_bits", "not 4");
  scheme.is_float = true;
  if (fields.String("type").value_or("float") != "float") fields.Reject("type", "not float");
  if (!fields.Bool("symmetric").value_or(true)) fields.Reject("symmetric", "must be true for float weights");
  const std::string strategy = is_nvfp4 ? "tensor_group" : "group";
  if (fields.String("strategy").value_or(strategy) != strategy) fields.Reject("strategy", "not " + strategy);
  scheme.group_size = is_nvfp4 ? 16 : 32;
  if (fields.Int("group_size", -1, kMaxGroupSize).value_or(scheme.group_size) != scheme.group_size) {
    fields.Reject("group_size", "not " + std::to_string(scheme.group_size));
  }
}

void ReadWeights(const ConfigFields& fields, QuantizationScheme& scheme) {
  if (scheme.float4 != Float4Format::kNone) return ReadFloat4Weights(fields, scheme);
  scheme.bits = fields.RequiredInt("num_bits", 1, 16);
  const std::string type = fields.String("type").value_or("int");
  if (type != "int" && type != "float") fields.Reject("type", "not int or float");
  scheme.is_float = type == "float";
  if (scheme.bits != 8 && (scheme.bits != 4 || scheme.is_float)) {
    fields.Reject("num_bits", scheme.is_float ? "not 8" : "not 4 or 8");
  }
  scheme.symmetric = fields.Bool("symmetric").value_or(true);
  if (!scheme.symmetric && scheme.is_float) fields.Reject("symmetric", "must be true for float weights");
  const bool has_group = fields.Has("group_size");
  const std::string strategy = fields.String("strategy").value_or(has_group ? "group" : "tensor");
  if (strategy == "group") {
    if (!has_group) fields.Fail("group_size", "missing");
    scheme.group_size = ReadGroupSize(fields, "group_size");
  } else if (strategy == "block") {
    if (!fields.Has("block_structure")) fields.Fail("block_structure", "missing");
    ReadBlock(fields, "block_structure", scheme);
  } else if (strategy == "tensor") {
    scheme.block_rows = kMaxGroupSize;
  } else if (strategy != "channel") {
    fields.Reject("strategy", "not tensor, channel, group or block");
  }
}

// Returns true if inputs are rounded to signed 8-bit integers with one scale per token, chosen at run time.
bool HasScalePerToken(const ConfigFields& group) {
  if (!group.Has("input_activations")) return false;
  const ConfigFields inputs = group.Child("input_activations");
  return inputs.Int("num_bits", 1, 16) == 8 && inputs.String("type").value_or("int") == "int" &&
         inputs.Bool("symmetric").value_or(true) && inputs.String("strategy") == "token" &&
         inputs.Bool("dynamic").value_or(false);
}

void ReadCompressedTensors(const ConfigFields& fields, QuantizationConfig& config) {
  const std::string format = fields.String("format").value_or("missing");
  if (fields.Has("sparsity_config") && !fields.At("sparsity_config").empty() &&
      fields.Child("sparsity_config").String("format").value_or("dense") != "dense") {
    fields.Reject("sparsity_config", "sparse weights are not supported");
  }
  ReadNames(fields, "ignore", config.ignored.names);
  if (!fields.Has("config_groups")) fields.Fail("config_groups", "missing");
  const ConfigFields groups = fields.Child("config_groups");
  if (fields.At("config_groups").size() > kMaxGroups) fields.Reject("config_groups", "must have at most 256 groups");
  for (const auto& [name, value] : fields.At("config_groups").items()) {
    if (!value.is_object()) fields.Reject("config_groups", "must contain only objects");
    const ConfigFields group = groups.Child(name.c_str());
    if (!group.Has("weights")) continue;
    QuantizationConfig::Group result;
    if (group.Has("format")) {
      ReadFormat(group, *group.String("format"), result.scheme);
    } else {
      ReadFormat(fields, format, result.scheme);
    }
    ReadWeights(group.Child("weights"), result.scheme);
    result.scheme.has_scale_per_token = HasScalePerToken(group);
    if (result.scheme.packed && result.scheme.is_float && result.scheme.float4 == Float4Format::kNone)
      fields.Reject("format", "packed float weights are not supported");
    ReadNames(group, "targets", result.targets.names);
    const std::vector<std::string>& names = result.targets.names;
    result.targets.all = std::find(names.begin(), names.end(), "Linear") != names.end();
    config.groups.push_back(std::move(result));
  }
}

// Converts a pattern in which "*" stands for any text to a regular expression for a whole layer name. Returns other
// names unchanged.
std::string TargetOf(const std::string& pattern) {
  if (pattern.find('*') == std::string::npos) return pattern;
  std::string regex = "re:";
  for (const char c : pattern) {
    if (c == '*') {
      regex += ".*";
    } else {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') regex += '\\';
      regex += c;
    }
  }
  return regex + "$";
}

// Reads the config of NVIDIA's Model Optimizer. hf_quant_config.json has the settings in an object "quantization",
// newer files have them next to quant_method.
void ReadModelOpt(const ConfigFields& method, QuantizationConfig& config) {
  const ConfigFields fields = method.Has("quantization") ? method.Child("quantization") : method;
  QuantizationScheme scheme{.bits = 4, .is_float = true, .float4 = Float4Format::kNvfp4, .packed = true};
  scheme.group_size = 16;
  if (!fields.Has("quant_algo")) fields.Fail("quant_algo", "missing");
  if (*fields.String("quant_algo") != "NVFP4") fields.Reject("quant_algo", "not NVFP4");
  if (fields.Int("group_size", -1, kMaxGroupSize).value_or(16) != 16) fields.Reject("group_size", "not 16");
  std::vector<std::string> names;
  for (const char* list : {"exclude_modules", "ignore"}) ReadNames(fields, list, names);
  for (const std::string& name : names) config.ignored.names.push_back(TargetOf(name));
  config.groups.push_back({{.all = true, .names = {}}, scheme});
}

// Reads the settings that transformers' HqqConfig saves.
void ReadHqq(const ConfigFields& method, QuantizationConfig& config) {
  if (!method.Has("quant_config")) method.Fail("quant_config", "missing");
  const ConfigFields all = method.Child("quant_config");
  if (!all.Has("weight_quant_params"))
    all.Fail("weight_quant_params", "missing or set per layer, which is not supported");
  for (const char* name : {"scale_quant_params", "zero_quant_params"}) {
    if (all.Has(name)) all.Reject(name, "quantized scales and zero points are not supported");
  }
  const ConfigFields fields = all.Child("weight_quant_params");
  QuantizationScheme scheme{.symmetric = false};
  scheme.bits = fields.RequiredInt("nbits", 1, 8);
  if (scheme.bits != 2 && scheme.bits != 4 && scheme.bits != 8) fields.Reject("nbits", "not 2, 4 or 8");
  scheme.packed = scheme.bits != 8;
  scheme.group_size = ReadGroupSize(fields, "group_size");
  if (fields.RequiredInt("axis", 0, 1) != 1) fields.Reject("axis", "not 1");
  if (fields.Bool("view_as_float").value_or(false)) fields.Reject("view_as_float", "must be false");
  ReadNames(method, "skip_modules", config.ignored.names);
  config.groups.push_back({{.all = true, .names = {}}, scheme});
}

void ReadBitsAndBytes(const ConfigFields& fields, QuantizationConfig& config) {
  const bool four = fields.Bool("load_in_4bit").value_or(false), eight = fields.Bool("load_in_8bit").value_or(false);
  if (four == eight) fields.Reject("load_in_4bit", "exactly one of load_in_4bit and load_in_8bit must be true");
  QuantizationScheme scheme{.bits = four ? 4 : 8, .packed = four};
  // The type of the codes' tensor. Its bytes are the same for all types.
  if (four && fields.String("bnb_4bit_quant_storage").value_or("uint8") != "uint8") {
    fields.Reject("bnb_4bit_quant_storage", "not uint8");
  }
  ReadNames(fields, "llm_int8_skip_modules", config.ignored.names);
  config.groups.push_back({{.all = true, .names = {}}, scheme});
}

}  // namespace

QuantizationConfig ReadQuantization(const ConfigFields& config) {
  QuantizationConfig result;
  const char* name = config.Has("quantization_config") ? "quantization_config" : "compression_config";
  if (!config.Has(name)) return result;
  const ConfigFields fields = config.Child(name);
  if (!fields.Has("quant_method")) fields.Fail("quant_method", "missing");
  const std::string method = *fields.String("quant_method");
  if (method == "gptq") {
    result.method = QuantizationMethod::kGptq;
    ReadGptq(fields, result);
  } else if (method == "awq") {
    result.method = QuantizationMethod::kAwq;
    ReadAwq(fields, result);
  } else if (method == "fp8" || method == "fbgemm_fp8") {
    result.method = QuantizationMethod::kFp8;
    ReadFp8(fields, result);
  } else if (method == "mxfp4") {
    if (config.String("model_type").value_or("") != "gpt_oss") {
      fields.Reject("quant_method", "mxfp4 is supported only with model_type gpt_oss");
    }
    result.method = QuantizationMethod::kMxfp4;
    ReadNames(fields, "modules_to_not_convert", result.ignored.names);
  } else if (method == "compressed-tensors") {
    result.method = QuantizationMethod::kCompressedTensors;
    ReadCompressedTensors(fields, result);
  } else if (method == "modelopt") {
    result.method = QuantizationMethod::kModelOpt;
    ReadModelOpt(fields, result);
  } else if (method == "bitsandbytes") {
    result.method = QuantizationMethod::kBitsAndBytes;
    ReadBitsAndBytes(fields, result);
  } else if (method == "auto-round" || method == "intel/auto-round") {
    ReadAutoRound(fields, result);
  } else if (method == "hqq") {
    result.method = QuantizationMethod::kHqq;
    ReadHqq(fields, result);
  } else {
    fields.Reject("quant_method",
                  "not one of auto-round, awq, bitsandbytes, compressed-tensors, fbgemm_fp8, fp8, gptq, hqq, modelopt, "
                  "mxfp4");
  }
  return result;
}

QuantizationConfig ReadHfQuantConfig(const std::string& directory) {
  const std::string path = directory + "/hf_quant_config.json";
  QuantizationConfig result;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return result;
  const std::string what = "hf_quant_config.json " + Escape(directory);
  const json object = ParseJson(ReadTextFile(path, kMaxConfigBytes, what), what);
  const ConfigFields fields(object, what);
  if (!fields.Has("quantization")) fields.Fail("quantization", "missing");
  if (!fields.Child("quantization").Has("quant_algo")) return result;
  result.method = QuantizationMethod::kModelOpt;
  ReadModelOpt(fields, result);
  return result;
}

}  // namespace vllm
