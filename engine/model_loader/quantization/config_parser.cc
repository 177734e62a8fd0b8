#include "engine/model_loader/quantization/config_parser.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/model_loader/quantization/targets.h"

namespace vllm {
namespace {

using nlohmann::json;

constexpr int64_t kMaxGroupSize = int64_t{1} << 24;
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
  if (scheme.bits != 4 && scheme.bits != 8) fields.Reject("bits", "not 4 or 8");
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

bool IsPackedFormat(const ConfigFields& fields, const std::string& format) {
  if (format == "pack-quantized") return true;
  if (format != "int-quantized" && format != "float-quantized" && format != "naive-quantized") {
    fields.Reject("format", "not supported");
  }
  return false;
}

QuantizationScheme ReadWeights(const ConfigFields& fields) {
  QuantizationScheme scheme;
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
  return scheme;
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
    result.scheme = ReadWeights(group.Child("weights"));
    result.scheme.packed =
        group.Has("format") ? IsPackedFormat(group, *group.String("format")) : IsPackedFormat(fields, format);
    if (result.scheme.packed && result.scheme.is_float)
      fields.Reject("format", "packed float weights are not supported");
    ReadNames(group, "targets", result.targets.names);
    const std::vector<std::string>& names = result.targets.names;
    result.targets.all = std::find(names.begin(), names.end(), "Linear") != names.end();
    config.groups.push_back(std::move(result));
  }
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
  } else {
    fields.Reject("quant_method", "not one of awq, compressed-tensors, fbgemm_fp8, fp8, gptq, mxfp4");
  }
  return result;
}

}  // namespace vllm
