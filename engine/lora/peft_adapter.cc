#include "engine/lora/peft_adapter.h"

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/config/hash.h"
#include "engine/lora/peft_config.h"
#include "engine/model_loader/hf/safetensors.h"
#include "engine/model_loader/json_file.h"

namespace vllm {
namespace {

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kWeightsFile = "adapter_model.safetensors";
constexpr const char* kPickleFile = "adapter_model.bin";
constexpr size_t kMaxConfigBytes = size_t{4} << 20;

enum class Part : uint8_t { kA, kB, kEmbeddingA, kEmbeddingB, kBBias, kBias, kBaseWeight, kMagnitude };

struct TensorName {
  std::string_view module;
  Part part = Part::kA;
};

// Returns nullopt if the tensor is not part of a LoRA module.
std::optional<TensorName> ParseName(std::string_view name) {
  struct Suffix {
    std::string_view text;
    Part part;
  };
  constexpr std::array<Suffix, 15> kSuffixes = {{{".lora_A.weight", Part::kA},
                                                 {".lora_B.weight", Part::kB},
                                                 {".lora_A.default.weight", Part::kA},
                                                 {".lora_B.default.weight", Part::kB},
                                                 {".lora_embedding_A", Part::kEmbeddingA},
                                                 {".lora_embedding_B", Part::kEmbeddingB},
                                                 {".lora_embedding_A.default", Part::kEmbeddingA},
                                                 {".lora_embedding_B.default", Part::kEmbeddingB},
                                                 {".lora_B.bias", Part::kBBias},
                                                 {".lora_B.default.bias", Part::kBBias},
                                                 {".base_layer.weight", Part::kBaseWeight},
                                                 {".lora_magnitude_vector", Part::kMagnitude},
                                                 {".lora_magnitude_vector.weight", Part::kMagnitude},
                                                 {".lora_magnitude_vector.default.weight", Part::kMagnitude},
                                                 {".bias", Part::kBias}}};
  for (const Suffix& suffix : kSuffixes) {
    if (!name.ends_with(suffix.text)) continue;
    name.remove_suffix(suffix.text.size());
    constexpr std::string_view kPrefix = "base_model.model.";
    if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
    // PEFT saves the biases of adapted layers under the name of the layer inside its wrapper.
    constexpr std::string_view kBaseLayer = ".base_layer";
    if (suffix.part == Part::kBias && name.ends_with(kBaseLayer)) name.remove_suffix(kBaseLayer.size());
    return TensorName{name, suffix.part};
  }
  return std::nullopt;
}

class PeftReader {
 public:
  PeftReader(const PeftConfig& config, std::shared_ptr<const SafetensorsFile> file, std::string what)
      : config_(config), file_(std::move(file)), what_(std::move(what)) {}

  void Read(LoRAAdapter& adapter) {
    for (const std::string& name : file_->Names()) Add(name);
    for (auto& [key, module] : modules_) {
      Finish(module);
      adapter.modules.push_back(std::move(module));
    }
    adapter.keep_alive = file_;
    SortModules(adapter);
  }

 private:
  [[noreturn]] void Fail(std::string_view tensor, const std::string& why) const {
    throw ModelError(what_ + "tensor " + Escape(tensor) + ": " + why);
  }

  void Add(const std::string& name) {
    const std::optional<TensorName> parsed = ParseName(name);
    if (!parsed) {
      Fail(name, "not a LoRA matrix; modules_to_save and other kinds of adapters are not supported");
    }
    bool is_embedding = parsed->part == Part::kEmbeddingA || parsed->part == Part::kEmbeddingB;
    if (parsed->part == Part::kBaseWeight) {
      const std::string prefix = name.substr(0, name.size() - std::string_view(".base_layer.weight").size());
      is_embedding = file_->Contains(prefix + ".lora_embedding_A");
    }
    const LoRAModule::Kind kind = is_embedding ? LoRAModule::Kind::kEmbedding : LoRAModule::Kind::kLinear;
    LoRAModule& module = modules_[{std::string(parsed->module), kind}];
    module.kind = kind;
    if (module.name.empty()) {
      module.name = CanonicalModuleName(parsed->module);
      module.tensor_name = name;
      module.scale = config_.ScaleOf(parsed->module);
      expected_rank_[module.name] = config_.RankOf(parsed->module);
    }
    const TensorView view = View(name);
    const bool is_vector =
        parsed->part == Part::kBias || parsed->part == Part::kBBias || parsed->part == Part::kMagnitude;
    if (view.shape.size() != (is_vector ? 1 : 2)) Fail(name, "wrong number of dimensions");
    switch (parsed->part) {
      case Part::kA:
      case Part::kEmbeddingA:
        Set(module.a, view);
        module.tensor_name = name;
        break;
      case Part::kB:
      case Part::kEmbeddingB:
        Set(module.b, view);
        break;
      case Part::kBBias:
        if (!config_.lora_bias) Fail(name, "adapter_config.json does not have lora_bias");
        module.b_bias = view;
        break;
      case Part::kBias:
        if (config_.bias == PeftConfig::Bias::kNone) Fail(name, "adapter_config.json has \"bias\": \"none\"");
        module.bias = view;
        break;
      case Part::kMagnitude:
        if (!config_.use_dora) Fail(name, "adapter_config.json does not have use_dora");
        module.magnitude = view;
        break;
      case Part::kBaseWeight:
        module.base_weight = view;
        break;
    }
  }

  TensorView View(const std::string& name) const {
    const std::vector<int64_t> shape = *file_->ShapeOf(name);
    for (const int64_t size : shape) {
      if (size < 1) Fail(name, "the tensor is empty");
    }
    TensorView view = file_->Get(name, shape);
    view.CheckFloatingPoint();
    return view;
  }

  void Set(TensorView& to, const TensorView& view) const {
    if (!to.shape.empty()) Fail(view.name, "the module has the same matrix twice (" + Escape(to.name) + ")");
    to = view;
  }

  void Finish(LoRAModule& module) const {
    if (module.a.shape.empty() && module.b.shape.empty()) {
      if (module.b_bias || module.base_weight)
        Fail(module.tensor_name, "the file has no lora_A and no lora_B for this module");
      return;
    }
    if (module.a.shape.empty()) Fail(module.b.name, "the file has no lora_A for this module");
    if (module.b.shape.empty()) Fail(module.a.name, "the file has no lora_B for this module");
    module.rank = module.a.shape[0];
    const int64_t expected = expected_rank_.at(module.name);
    if (module.rank != expected) {
      Fail(module.a.name, "rank is " + std::to_string(module.rank) +
                              " but r and rank_pattern of adapter_config.json say " + std::to_string(expected));
    }
    if (module.b.shape[1] != module.rank) {
      Fail(module.b.name, "has " + std::to_string(module.b.shape[1]) + " columns but lora_A has " +
                              std::to_string(module.rank) + " rows");
    }
    for (const std::optional<TensorView>* vector : {&module.b_bias, &module.bias, &module.magnitude}) {
      if (*vector && (*vector)->shape[0] != module.b.shape[0]) {
        Fail((*vector)->name, "has " + std::to_string((*vector)->shape[0]) + " elements but lora_B has " +
                                  std::to_string(module.b.shape[0]) + " rows");
      }
    }
    if (config_.use_dora && module.kind == LoRAModule::Kind::kEmbedding) {
      Fail(module.a.name, "DoRA of an embedding is not supported");
    }
    if (config_.use_dora && !module.magnitude) {
      Fail(module.a.name, "the file has no lora_magnitude_vector although adapter_config.json has use_dora");
    }
    if (config_.lora_bias && module.kind == LoRAModule::Kind::kLinear && !module.b_bias) {
      Fail(module.b.name, "the file has no lora_B.bias although adapter_config.json has lora_bias");
    }
  }

  const PeftConfig& config_;
  std::shared_ptr<const SafetensorsFile> file_;
  std::string what_;
  std::map<std::pair<std::string, LoRAModule::Kind>, LoRAModule> modules_;  // by the module's path in the file
  std::map<std::string, int64_t> expected_rank_;                            // by canonical name
};

}  // namespace

std::shared_ptr<const LoRAAdapter> LoadPeftAdapter(const std::string& name, const std::string& directory) {
  const std::string what = "adapter " + Escape(directory) + ": ";
  const std::string weights_path = directory + "/" + kWeightsFile;
  const auto exists = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::symlink_status(path, error).type() != std::filesystem::file_type::not_found;
  };
  if (!exists(directory + "/" + kConfigFile)) throw ModelError(what + "there is no " + kConfigFile);
  if (!exists(weights_path)) {
    if (exists(directory + "/" + kPickleFile)) {
      throw ModelError(what +
                       "there is only a pickle file, which can run code when it is opened; save the adapter as " +
                       kWeightsFile + " (found " + kPickleFile + ")");
    }
    throw ModelError(what + "there is no " + kWeightsFile);
  }
  const std::string config_what = std::string(kConfigFile) + " " + Escape(directory);
  const std::string text = ReadTextFile(directory + "/" + kConfigFile, kMaxConfigBytes, config_what);
  const PeftConfig config = ParsePeftConfig(text, config_what);
  auto file = std::make_shared<const SafetensorsFile>(weights_path);
  auto adapter = std::make_shared<LoRAAdapter>();
  adapter->name = name;
  adapter->path = directory;
  adapter->digest = LoRADigest(text, *file->Files().front());
  PeftReader(config, std::move(file), what).Read(*adapter);
  return adapter;
}

}  // namespace vllm
