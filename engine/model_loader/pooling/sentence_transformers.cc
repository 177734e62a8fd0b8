#include "engine/model_loader/pooling/sentence_transformers.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/config_fields.h"
#include "engine/model_loader/hf/safetensors.h"
#include "engine/model_loader/json_file.h"

namespace vllm {
namespace {

constexpr size_t kMaxFileBytes = size_t{4} << 20;
constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr size_t kMaxModules = 32;
constexpr size_t kMaxPrompts = 1024;

// Returns nullopt if the file is missing.
std::optional<nlohmann::json> ReadJson(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  const std::string what = name + " " + Escape(directory);
  return ParseJson(ReadTextFile(path, kMaxFileBytes, what), what);
}

// Returns the last part of a Python class name: "sentence_transformers.models.Pooling" and
// "sentence_transformers.sentence_transformer.modules.pooling.Pooling" are the same module.
std::string ClassName(const std::string& type) { return type.substr(type.rfind('.') + 1); }

// Throws ModelError unless `path` is the name of a directory in the model's directory.
void CheckModulePath(const ConfigFields& fields, const std::string& path) {
  const bool is_name = !path.empty() && path != "." && path != ".." && path.find('/') == std::string::npos &&
                       path.find('\0') == std::string::npos;
  if (!is_name) fields.Reject("path", "not the name of a directory");
}

void ReadPooling(const ConfigFields& fields, PoolerConfig& pooler) {
  constexpr std::pair<const char*, PoolingType> kFlags[] = {
      {"pooling_mode_cls_token", PoolingType::kCls},
      {"pooling_mode_max_tokens", PoolingType::kMax},
      {"pooling_mode_mean_tokens", PoolingType::kMean},
      {"pooling_mode_mean_sqrt_len_tokens", PoolingType::kMeanSqrtLen},
      {"pooling_mode_weightedmean_tokens", PoolingType::kWeightedMean},
      {"pooling_mode_lasttoken", PoolingType::kLast},
  };
  std::vector<PoolingType> types;
  const char* const mode = "pooling_mode";
  if (fields.Has(mode)) {
    const std::vector<std::string> names =
        fields.At(mode).is_string() ? std::vector{*fields.String(mode)} : fields.Strings(mode);
    for (const std::string& name : names) {
      const std::optional<PoolingType> type = ParsePoolingType(name);
      if (!type) fields.Fail(mode, "unknown pooling (" + Escape(name, 60) + ")");
      types.push_back(*type);
    }
  } else {
    for (const auto& [name, type] : kFlags) {
      if (fields.Bool(name).value_or(false)) types.push_back(type);
    }
  }
  if (types.empty()) types = {PoolingType::kMean};
  if (types.size() > std::size(kFlags)) fields.Reject(mode, "too many poolings");
  pooler.types = std::move(types);
  pooler.include_prompt = fields.Bool("include_prompt").value_or(true);
}

PoolerActivation DenseActivation(const ConfigFields& fields) {
  const std::string name = ClassName(fields.String("activation_function").value_or("torch.nn.modules.activation.Tanh"));
  constexpr std::pair<std::string_view, PoolerActivation> kKnown[] = {
      {"Identity", PoolerActivation::kIdentity}, {"Tanh", PoolerActivation::kTanh},
      {"GELU", PoolerActivation::kGelu},         {"ReLU", PoolerActivation::kRelu},
      {"SiLU", PoolerActivation::kSilu},         {"Sigmoid", PoolerActivation::kSigmoid},
  };
  for (const auto& [known, activation] : kKnown) {
    if (known == name) return activation;
  }
  fields.Reject("activation_function", "unknown activation");
}

void ReadDense(const ConfigFields& fields, const std::string& path, int64_t in_features, PoolerConfig& pooler) {
  PoolerDense dense;
  dense.name = path + ".linear";
  dense.in_features = fields.RequiredInt("in_features", 1, kMaxSize);
  dense.out_features = fields.RequiredInt("out_features", 1, kMaxSize);
  dense.has_bias = fields.Bool("bias").value_or(true);
  dense.activation = DenseActivation(fields);
  if (dense.in_features != in_features) {
    fields.Reject("in_features", "the modules before give " + std::to_string(in_features) + " dimensions");
  }
  pooler.dense.push_back(std::move(dense));
}

void ReadModules(const nlohmann::json& modules, ModelConfig& config) {
  const std::string what = "modules.json " + Escape(config.directory);
  if (!modules.is_array() || modules.empty() || modules.size() > kMaxModules) {
    throw ModelError(what + ": not a list of 1 to " + std::to_string(kMaxModules) + " modules");
  }
  PoolerConfig& pooler = config.pooler;
  bool has_pooling = false;
  pooler.normalize = false;
  for (const nlohmann::json& module : modules) {
    const ConfigFields fields(module, what);
    const std::string type = fields.String("type").value_or("");
    const std::string name = ClassName(type);
    const std::string path = fields.String("path").value_or("");
    if (name == "Transformer") continue;
    if (name == "Normalize") {
      pooler.normalize = true;
      continue;
    }
    if (name != "Pooling" && name != "Dense") {
      fields.Fail("type", "unknown module (" + Escape(type, 80) + "; known: Transformer, Pooling, Dense, Normalize)");
    }
    if (pooler.normalize) fields.Reject("type", "a module after Normalize is not supported");
    CheckModulePath(fields, path);
    const std::string file = path + "/config.json";
    const std::optional<nlohmann::json> object = ReadJson(config.directory, file);
    if (!object) throw ModelError(file + " " + Escape(config.directory) + ": missing");
    const ConfigFields part(*object, file + " " + Escape(config.directory));
    if (name == "Dense") {
      ReadDense(part, path, pooler.VectorSize(config.hidden_size), pooler);
    } else if (has_pooling) {
      fields.Reject("type", "a second Pooling is not supported");
    } else {
      ReadPooling(part, pooler);
      has_pooling = true;
    }
  }
  if (!has_pooling) throw ModelError(what + ": there is no Pooling module");
  pooler.is_from_files = true;
}

void ReadPrompts(const ConfigFields& fields, ModelConfig& config) {
  PoolerConfig& pooler = config.pooler;
  if (fields.Has("prompts")) {
    const nlohmann::json& prompts = fields.At("prompts");
    if (!prompts.is_object() || prompts.size() > kMaxPrompts) fields.Fail("prompts", "not an object of texts");
    for (const auto& [name, text] : prompts.items()) {
      if (!text.is_string()) fields.Fail("prompts", "a prompt is not a text (" + Escape(name, 60) + ")");
      pooler.prompts.emplace_back(name, text.get<std::string>());
    }
  }
  pooler.default_prompt_name = fields.String("default_prompt_name").value_or("");
  pooler.similarity = fields.String("similarity_fn_name").value_or("cosine");
  pooler.truncate_dim = fields.Int("truncate_dim", 1, kMaxSize).value_or(0);
}

// The tensors of the model and those of its Dense modules.
class JoinedWeights final : public WeightSource {
 public:
  explicit JoinedWeights(std::unique_ptr<WeightSource> weights) : weights_(std::move(weights)) {}
  void Add(std::string module, std::unique_ptr<SafetensorsFile> file) { files_[std::move(module)] = std::move(file); }

  bool Contains(std::string_view name) const override {
    const auto [file, rest] = Find(name);
    return file == nullptr ? weights_->Contains(name) : file->Contains(rest);
  }
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override {
    const auto [file, rest] = Find(name);
    return file == nullptr ? weights_->Get(name, shape) : file->Get(rest, shape);
  }
  std::optional<std::vector<int64_t>> ShapeOf(std::string_view name) const override {
    const auto [file, rest] = Find(name);
    return file == nullptr ? weights_->ShapeOf(name) : file->ShapeOf(rest);
  }
  void DropPages() const override { weights_->DropPages(); }
  bool DecidesBiases() const override { return weights_->DecidesBiases(); }
  std::vector<std::string> Names() const override { return weights_->Names(); }
  std::vector<const MappedFile*> Files() const override {
    std::vector<const MappedFile*> all = weights_->Files();
    for (const auto& [module, file] : files_) {
      for (const MappedFile* mapped : file->Files()) all.push_back(mapped);
    }
    return all;
  }
  int64_t TotalBytes() const override {
    int64_t bytes = weights_->TotalBytes();
    for (const auto& [module, file] : files_) bytes += file->TotalBytes();
    return bytes;
  }

 private:
  // Returns the module's file and the name without the module, or null.
  std::pair<const SafetensorsFile*, std::string_view> Find(std::string_view name) const {
    const size_t dot = name.find('.');
    if (dot == std::string_view::npos) return {nullptr, name};
    const auto it = files_.find(name.substr(0, dot));
    if (it == files_.end()) return {nullptr, name};
    return {it->second.get(), name.substr(dot + 1)};
  }

  std::unique_ptr<WeightSource> weights_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>, std::less<>> files_;
};

}  // namespace

void ReadSentenceTransformers(ModelConfig& config) {
  const char* const tokenizer = "tokenizer_config.json";
  if (const auto object = ReadJson(config.directory, tokenizer); object && object->is_object()) {
    // transformers writes 1e30 for no limit.
    const auto limit = object->find("model_max_length");
    if (limit != object->end() && limit->is_number_integer() && *limit > 0 && *limit <= kMaxSize) {
      config.pooler.max_seq_length = limit->get<int64_t>();
    }
  }
  const std::optional<nlohmann::json> modules = ReadJson(config.directory, "modules.json");
  if (!modules) return;
  ReadModules(*modules, config);
  const char* const bert = "sentence_bert_config.json";
  if (const auto object = ReadJson(config.directory, bert)) {
    const ConfigFields fields(*object, std::string(bert) + " " + Escape(config.directory));
    config.pooler.max_seq_length = fields.Int("max_seq_length", 1, kMaxSize).value_or(config.pooler.max_seq_length);
    config.pooler.lower_case = fields.Bool("do_lower_case").value_or(false);
  }
  const char* const own = "config_sentence_transformers.json";
  if (const auto object = ReadJson(config.directory, own)) {
    const ConfigFields fields(*object, std::string(own) + " " + Escape(config.directory));
    ReadPrompts(fields, config);
  }
}

std::unique_ptr<WeightSource> AddDenseModules(const ModelConfig& config, std::unique_ptr<WeightSource> weights) {
  if (config.pooler.dense.empty()) return weights;
  auto joined = std::make_unique<JoinedWeights>(std::move(weights));
  for (const PoolerDense& dense : config.pooler.dense) {
    const std::string module = dense.name.substr(0, dense.name.find('.'));
    joined->Add(module, std::make_unique<SafetensorsFile>(config.directory + "/" + module + "/model.safetensors"));
  }
  return joined;
}

}  // namespace vllm
