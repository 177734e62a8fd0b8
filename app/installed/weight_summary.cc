#include "app/installed/weight_summary.h"

#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/hf/safetensors_header.h"
#include "engine/model_loader/json_file.h"
#include "engine/model_loader/mapped_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIndexBytes = size_t{64} << 20;

// Returns the weight files that OpenWeights would load.
std::vector<std::string> SafetensorsFiles(const std::string& directory) {
  std::error_code error;
  const std::string single = directory + "/model.safetensors";
  if (fs::exists(single, error)) return {single};
  const std::string index = single + ".index.json";
  if (!fs::exists(index, error)) {
    throw ModelError("weights of " + Escape(directory) +
                     ": neither model.safetensors nor model.safetensors.index.json exists");
  }
  const std::string what = "tensor index " + Escape(index);
  const nlohmann::json json = ParseJson(ReadTextFile(index, kMaxIndexBytes, what), what);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    throw ModelError(what + ": weight_map: missing");
  }
  std::set<std::string> names;
  for (const nlohmann::json& name : json["weight_map"]) {
    if (!name.is_string() || name.get_ref<const std::string&>().find('/') != std::string::npos) {
      throw ModelError(what + ": weight_map: not a plain file name");
    }
    names.insert(name.get<std::string>());
  }
  std::vector<std::string> files;
  files.reserve(names.size());
  for (const std::string& name : names) files.push_back(directory + "/" + name);
  return files;
}

bool EndsInAny(std::string_view name, std::initializer_list<std::string_view> endings) {
  for (const std::string_view ending : endings) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

// Returns the number of parameters in a tensor. In a quantized matrix only the codes count, not scales and zero points.
int64_t ParametersOf(const SafetensorsEntry& entry, const ModelConfig& model) {
  int64_t elements = 1;
  for (const uint64_t size : entry.shape) elements *= static_cast<int64_t>(size);
  if (model.quantization.method == QuantizationMethod::kNone) return elements;
  if (model.quantization.method == QuantizationMethod::kMxfp4) {
    if (entry.name.ends_with("_scales")) return 0;
    return entry.name.ends_with("_blocks") ? 2 * elements : elements;
  }
  const int64_t bits = model.quantization.groups.empty() ? 0 : model.quantization.groups[0].scheme.bits;
  if (EndsInAny(entry.name, {".qweight", ".weight_packed"}) && entry.dtype == "I32" && bits > 0) {
    return elements * 32 / bits;
  }
  if (EndsInAny(entry.name, {".weight", ".weight_packed", ".W_q"}) && entry.dtype == "U8" && bits > 0) {
    return elements * 8 / bits;
  }
  // The scales and tables of a matrix X.weight.
  if (model.quantization.method == QuantizationMethod::kBitsAndBytes &&
      entry.name.find(".weight.") != std::string::npos)
    return 0;
  if (model.quantization.method == QuantizationMethod::kHqq) {
    return EndsInAny(entry.name, {".weight", ".bias", ".W_q"}) ? elements : 0;
  }
  const bool is_metadata =
      EndsInAny(entry.name, {".qzeros", ".scales", ".g_idx", ".weight_scale", ".weight_scale_inv", ".weight_zero_point",
                             ".weight_shape", ".weight_g_idx", ".weight_global_scale", ".weight_scale_2",
                             ".input_scale", ".input_global_scale", ".input_zero_point", ".SCB", ".weight_format"});
  return is_metadata ? 0 : elements;
}

std::string QuantizationText(const QuantizationConfig& quantization) {
  std::string text(ToString(quantization.method));
  if (quantization.method == QuantizationMethod::kNone || quantization.groups.empty()) return text;
  const QuantizationScheme& scheme = quantization.groups[0].scheme;
  if (scheme.float4 == Float4Format::kNvfp4) return text + " NVFP4";
  if (scheme.float4 == Float4Format::kMxfp4) return text + " MXFP4";
  const int64_t bits = scheme.bits;
  return bits > 0 ? text + " " + std::to_string(bits) + " bit" : text;
}

WeightSummary SummarizeGguf(const std::string& path) {
  const GgufFile file(path);
  WeightSummary summary;
  summary.parameters = CountParameters(file);
  summary.quantization = GgufQuantization(file);
  for (const GgufTensor* tensor : file.tensors()) {
    summary.bytes += static_cast<int64_t>(tensor->data.size());
    ++summary.num_tensors;
    ++summary.tensors_of_type[std::string(tensor->type->name)];
  }
  return summary;
}

}  // namespace

WeightSummary SummarizeWeights(const ModelLocation& location, const ModelConfig& model) {
  if (location.is_gguf()) return SummarizeGguf(location.gguf_file);
  WeightSummary summary;
  summary.quantization = QuantizationText(model.quantization);
  for (const std::string& path : SafetensorsFiles(location.directory)) {
    const MappedFile file(path);
    for (const SafetensorsEntry& entry : ParseSafetensors(file.bytes(), path)) {
      summary.parameters += ParametersOf(entry, model);
      summary.bytes += static_cast<int64_t>(entry.data.size());
      ++summary.num_tensors;
      ++summary.tensors_of_type[std::string(entry.dtype)];
    }
  }
  return summary;
}

}  // namespace vllm::app
