#include "engine/lora/gguf_adapter.h"

#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/gguf/architecture.h"
#include "engine/model_loader/gguf/format/file.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"

namespace vllm {
namespace {

constexpr double kMaxAlpha = 1e9;

std::string_view FindName(std::span<const GgufTensorName> names, std::string_view gguf) {
  for (const GgufTensorName& name : names) {
    if (name.gguf == gguf) return name.hf;
  }
  return {};
}

class GgufAdapterReader {
 public:
  GgufAdapterReader(std::shared_ptr<const GgufFile> file, const ModelConfig& model)
      : file_(std::move(file)), model_(model) {}

  void Read(LoRAAdapter& adapter) {
    CheckKeys();
    for (const GgufTensor* tensor : file_->tensors()) Add(*tensor);
    for (auto& [name, module] : modules_) {
      Finish(module);
      adapter.modules.push_back(std::move(module));
    }
    adapter.keep_alive = std::make_shared<Storage>(Storage{file_, std::move(dequantized_)});
    SortModules(adapter);
  }

 private:
  [[noreturn]] void Fail(std::string_view tensor, const std::string& why) const {
    throw ModelError("adapter " + Escape(file_->path()) + ": tensor " + Escape(tensor) + ": " + why);
  }

  void CheckKeys() {
    const GgufMetadata& keys = file_->metadata();
    if (keys.String("general.type").value_or("") != "adapter") {
      keys.Fail("general.type", "the file is not an adapter (its type is not \"adapter\")");
    }
    if (keys.String("adapter.type").value_or("") != "lora") {
      keys.Fail("adapter.type", "only LoRA adapters are supported");
    }
    if (keys.Has("adapter.alora.invocation_tokens")) {
      keys.Fail("adapter.alora.invocation_tokens", "activated LoRA is not supported");
    }
    const std::string_view name = keys.String("general.architecture").value_or("");
    architecture_ = FindGgufArchitecture(name, model_.num_experts > 0);
    if (architecture_ == nullptr) keys.Fail("general.architecture", "unknown architecture");
    if (architecture_->hf_architecture != model_.architecture) {
      keys.Fail("general.architecture", "the adapter is for " + std::string(architecture_->hf_architecture) +
                                            " but the model is " + Escape(model_.architecture));
    }
    alpha_ = keys.Double("adapter.lora.alpha", -kMaxAlpha, kMaxAlpha).value_or(0.0);
  }

  void Add(const GgufTensor& tensor) {
    constexpr std::string_view kA = ".weight.lora_a", kB = ".weight.lora_b", kBlock = "blk.";
    std::string_view stem = tensor.name;
    const bool is_a = stem.ends_with(kA);
    if (!is_a && !stem.ends_with(kB)) Fail(tensor.name, "not a LoRA matrix");
    stem.remove_suffix(kA.size());
    std::string module_name;
    bool is_rotary = false;
    if (stem.starts_with(kBlock)) {
      stem.remove_prefix(kBlock.size());
      int64_t layer = -1;
      const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), layer);
      const auto digits = static_cast<size_t>(end - stem.data());
      if (error != std::errc() || digits >= stem.size() || stem[digits] != '.' || layer < 0 ||
          layer >= model_.num_hidden_layers) {
        Fail(tensor.name, "the model has no such layer (" + std::to_string(model_.num_hidden_layers) + " layers)");
      }
      stem.remove_prefix(digits + 1);
      is_rotary = stem == "attn_q" || stem == "attn_k";
      const std::string_view hf = FindName(architecture_->layer, stem);
      if (!hf.empty() && hf.find("{}") == std::string_view::npos) {
        module_name = std::string(architecture_->layer_prefix) + std::to_string(layer) + "." + std::string(hf);
      }
    } else if (stem == "output") {
      module_name = FindName(architecture_->outer, stem);
    }
    if (module_name.empty()) {
      Fail(tensor.name, "adapters for this tensor of " + std::string(architecture_->name) + " are not supported");
    }
    LoRAModule& module = modules_[module_name];
    module.name = CanonicalModuleName(module_name);
    TensorView view;
    view.name = std::string(tensor.name);
    if (!tensor.type->weight_type) {
      Fail(tensor.name, "unsupported type " + std::string(tensor.type->name));
    }
    view.type = *tensor.type->weight_type;
    view.shape = tensor.shape;
    if (view.shape.size() == 1) view.shape.insert(view.shape.begin(), 1);  // llama.cpp drops a dimension of 1
    if (view.shape.size() != 2) Fail(tensor.name, "wrong number of dimensions");
    view.data = tensor.data;
    if (const std::optional<kernels::QuantFormat> format = kernels::BlockFormat(view.type)) Dequantize(*format, view);
    view.CheckFloatingPoint();
    if (is_a) {
      module.tensor_name = view.name;
      module.a = std::move(view);
      return;
    }
    if (is_rotary && architecture_->interleaved_rope) {
      if (view.shape[0] % model_.head_dim != 0) Fail(tensor.name, "number of rows is not a multiple of head_dim");
      view.interleaved_head_dim = model_.head_dim;
    }
    module.b = std::move(view);
  }

  // Replaces the blocks by their values in float32. The file checks that rows are whole blocks.
  void Dequantize(kernels::QuantFormat format, TensorView& view) {
    kernels::CheckpointQuantMatrixView blocks;
    blocks.format = format;
    blocks.data = reinterpret_cast<const uint8_t*>(view.data.data());
    blocks.num_rows = view.shape[0];
    blocks.num_columns = view.shape[1];
    blocks.row_bytes = kernels::QuantRowBytes(format, blocks.num_columns);
    std::vector<float> values(static_cast<size_t>(blocks.num_rows * blocks.num_columns));
    const kernels::QuantKernels& kernels = *kernels::KernelsFor(kernels::Isa::kGeneric).quant;
    for (int64_t row = 0; row < blocks.num_rows; ++row) {
      kernels.dequantize(blocks, row, 0, blocks.num_columns, values.data() + row * blocks.num_columns);
    }
    view.type = kernels::WeightType::kFloat32;
    view.data = std::as_bytes(std::span(values));
    dequantized_.push_back(std::move(values));
  }

  void Finish(LoRAModule& module) const {
    if (module.a.shape.empty()) Fail(module.b.name, "the file has no lora_a for this tensor");
    if (module.b.shape.empty()) Fail(module.a.name, "the file has no lora_b for this tensor");
    module.rank = module.a.shape[0];
    if (module.b.shape[1] != module.rank) {
      Fail(module.b.name, "has " + std::to_string(module.b.shape[1]) + " columns but lora_a has " +
                              std::to_string(module.rank) + " rows");
    }
    module.scale = alpha_ == 0.0 ? 1.0 : alpha_ / static_cast<double>(module.rank);
  }

  // What the views of the adapter point to.
  struct Storage {
    std::shared_ptr<const GgufFile> file;
    std::vector<std::vector<float>> dequantized;
  };

  std::shared_ptr<const GgufFile> file_;
  std::vector<std::vector<float>> dequantized_;
  const ModelConfig& model_;
  const GgufArchitecture* architecture_ = nullptr;
  double alpha_ = 0.0;
  std::map<std::string, LoRAModule> modules_;  // by the module's name in the Hugging Face checkpoint
};

}  // namespace

std::shared_ptr<const LoRAAdapter> LoadGgufAdapter(const std::string& name, const std::string& path,
                                                   const ModelConfig& model) {
  auto file = std::make_shared<const GgufFile>(path);
  if (file->files().size() != 1) throw ModelError("adapter " + Escape(path) + ": must be one file");
  auto adapter = std::make_shared<LoRAAdapter>();
  adapter->name = name;
  adapter->path = path;
  adapter->digest = LoRADigest("", *file->files().front());
  GgufAdapterReader(std::move(file), model).Read(*adapter);
  return adapter;
}

}  // namespace vllm
