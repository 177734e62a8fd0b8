#include "engine/model_loader/gguf/weights.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {
namespace {

constexpr int64_t kMaxLayers = 1024;
constexpr const char* kTypeSuggestion = "nearest that runs: a file of the same model with Q4_K_M or Q8_0";

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::span<const int64_t> WithoutLeadingOnes(std::span<const int64_t> shape) {
  while (shape.size() > 1 && shape.front() == 1) shape = shape.subspan(1);
  return shape;
}

// Returns `name` with `suffix`, with which it ends, replaced by another one.
std::string WithSuffix(std::string_view name, std::string_view suffix, std::string_view other) {
  return std::string(name.substr(0, name.size() - suffix.size())) + std::string(other);
}

std::string_view FindName(std::span<const GgufTensorName> names, std::string_view gguf) {
  const auto it =
      std::find_if(names.begin(), names.end(), [&](const GgufTensorName& name) { return name.gguf == gguf; });
  return it == names.end() ? std::string_view() : it->hf;
}

// The parts of a tensor's name. In "blk.12.attn_q.weight", they are 12, "attn_q" and ".weight". The parameters "ssm_a"
// and "ssm_d" have no suffix. Neither has "ffn_norm" of Falcon-H1, whose suffix is then set to ".weight".
struct TensorName {
  int64_t layer = -1;
  std::string_view stem;
  std::string_view suffix;
};

TensorName ParseName(std::string_view name) {
  TensorName parsed;
  constexpr std::string_view kBlock = "blk.";
  if (name.starts_with(kBlock)) {
    name.remove_prefix(kBlock.size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), parsed.layer);
    const auto digits = static_cast<size_t>(end - name.data());
    if (error != std::errc() || digits >= name.size() || name[digits] != '.') return {};
    name.remove_prefix(digits + 1);
  }
  if (parsed.layer >= 0 && (name == "ssm_a" || name == "ssm_d" || name == "ffn_norm")) {
    parsed.stem = name;
    if (name == "ffn_norm") parsed.suffix = ".weight";
    return parsed;
  }
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  parsed.stem = name.substr(0, dot);
  parsed.suffix = name.substr(dot);
  constexpr std::array<std::string_view, 4> kSuffixes = {".weight", ".bias", ".scale", ".input_scale"};
  return std::ranges::find(kSuffixes, parsed.suffix) != kSuffixes.end() ? parsed : TensorName{};
}

// Returns true if the architecture may have a bias with this stem. Linear layers may have one, except the output head
// and, in most architectures, experts. Norms may have one if they are LayerNorms over the whole row, not over each
// head.
bool AllowsBias(const GgufArchitecture& architecture, std::string_view stem) {
  if (stem == "cls.output") return true;
  const bool is_expert =
      stem.ends_with("_exps") || stem.ends_with("_shexp") || stem.find('.') != std::string_view::npos;
  if (is_expert && stem != "ffn_gate_inp_shexp") return architecture.expert_biases && stem.ends_with("_exps");
  if (stem == "output") return architecture.name == "phimoe";
  if (stem == "token_embd" || stem == "token_types" || stem == "position_embd") return false;
  if (stem == "attn_q_norm" || stem == "attn_k_norm") return architecture.name == "jina-bert-v2";
  return architecture.layer_norm || !stem.ends_with("_norm");
}

// Returns true for rotary tables: frequency divisors, which ReadGgufRope reads, and attn_rot_embd, which is not needed.
bool IsRotaryTable(std::string_view name) {
  return name == "rope_freqs.weight" || name == "rope_factors_long.weight" || name == "rope_factors_short.weight" ||
         name.ends_with(".attn_rot_embd.weight") || name.ends_with(".attn_rot_embd");
}

}  // namespace

GgufWeights::GgufWeights(const ModelConfig& config) : file_(config.gguf_file) {
  if (file_.tensors().empty()) {
    throw ModelError("weights of " + Escape(file_.path()) + ": the file contains metadata but no tensors");
  }
  const std::string_view architecture_name = file_.metadata().String("general.architecture").value_or("");
  architecture_ = FindGgufArchitecture(architecture_name, config.num_experts > 0);
  if (architecture_ == nullptr) file_.metadata().Fail("general.architecture", "unknown architecture");
  // The blocks after num_hidden_layers predict further tokens (MTP) and are not used.
  const std::string nextn = std::string(architecture_->name) + ".nextn_predict_layers";
  const int64_t num_blocks = config.num_hidden_layers + file_.metadata().Int(nextn, 0, kMaxLayers).value_or(0);
  std::map<std::string_view, const GgufTensor*> nvfp4;
  for (const GgufTensor* tensor : file_.tensors()) {
    if (tensor->type->weight_type == kernels::WeightType::kNVFP4) nvfp4.emplace(tensor->name, tensor);
  }
  std::vector<std::pair<const GgufTensor*, const GgufTensor*>> scales;  // the matrix, and its factors
  for (const GgufTensor* tensor : file_.tensors()) {
    if (IsRotaryTable(tensor->name)) continue;
    const TensorName name = ParseName(tensor->name);
    const auto matrix = nvfp4.find(WithSuffix(tensor->name, name.suffix, ".weight"));
    const bool has_scale = matrix != nvfp4.end() && name.layer < config.num_hidden_layers;
    // Activations are not rounded to four bits, so the scales of inputs are not needed.
    if (has_scale && name.suffix == ".input_scale") continue;
    // "ffn_down_exps.scale" is a parameter of Gemma 4's router.
    if (has_scale && name.suffix == ".scale" &&
        FindName(architecture_->layer, std::string(name.stem) + ".scale").empty()) {
      scales.emplace_back(matrix->second, tensor);
      continue;
    }
    if (name.suffix == ".bias" && !AllowsBias(*architecture_, name.stem)) {
      Fail(tensor->name, "not part of the architecture " + std::string(architecture_->name));
    }
    if (name.layer >= config.num_hidden_layers && name.layer < num_blocks) continue;
    if (name.layer >= 0) {
      AddLayerTensor(config, *tensor, name.layer, name.stem, name.suffix);
      continue;
    }
    const std::string_view hf = FindName(architecture_->outer, name.stem);
    if (hf.empty() || name.suffix.ends_with("scale"))
      Fail(tensor->name, "not part of the architecture " + std::string(architecture_->name));
    if (hf.find("{}") != std::string_view::npos) {  // the projections of Gemma 3n's streams
      const int64_t rows = tensor->shape.size() == 3 ? tensor->shape[1] : 0;
      AddStack(*tensor, "", hf, name.suffix, config.altup_num_inputs - 1, 0, rows);
      continue;
    }
    Add(std::string(hf) + std::string(name.suffix), {.tensor = tensor, .shape = tensor->shape});
  }
  for (const auto& [matrix, factors] : scales) SetScales(*matrix, *factors);
}

void GgufWeights::SetScales(const GgufTensor& tensor, const GgufTensor& scales) {
  const int64_t num_experts = tensor.shape.size() == 3 ? tensor.shape[0] : 1;
  if (scales.type->weight_type != kernels::WeightType::kFloat32 || scales.shape.size() != 1 ||
      (scales.shape[0] != 1 && scales.shape[0] != num_experts)) {
    Fail(scales.name, "must have the type F32 and 1 element, or one per expert (" + std::string(scales.type->name) +
                          ", " + ShapeText(scales.shape) + ")");
  }
  std::vector<float> values(static_cast<size_t>(scales.shape[0]));
  std::memcpy(values.data(), scales.data.data(), values.size() * sizeof(float));
  for (const float value : values) {
    if (!std::isfinite(value) || value <= 0.0f) Fail(scales.name, "must have finite values above 0");
  }
  for (auto& [name, entry] : tensors_) {
    if (entry.tensor != &tensor) continue;
    const int64_t expert = values.size() == 1 ? 0 : entry.first_row / tensor.shape[1];
    entry.scale = values[static_cast<size_t>(expert)];
  }
}

void GgufWeights::AddLayerTensor(const ModelConfig& config, const GgufTensor& tensor, int64_t layer,
                                 std::string_view stem, std::string_view suffix) {
  if (layer >= config.num_hidden_layers) {
    Fail(tensor.name, "layer index is not below block_count " + std::to_string(config.num_hidden_layers));
  }
  const std::string prefix = std::string(architecture_->layer_prefix) + std::to_string(layer) + ".";
  const int64_t head_rows = architecture_->interleaved_rope ? config.head_dim : 0;
  // The converter makes matrices of these parameters of Mamba-2, one row per head or group.
  const bool is_vector = stem == "ssm_a" || stem == "ssm_d" || stem == "ssm_norm";
  const std::vector<int64_t> own_shape = is_vector ? std::vector<int64_t>{tensor.num_elements()} : tensor.shape;
  const std::string whole = std::string(stem) + std::string(suffix);
  if (const std::string_view hf = FindName(architecture_->layer, whole); !hf.empty()) {
    Add(prefix + std::string(hf), {.tensor = &tensor, .shape = own_shape});
    return;
  }
  if (suffix.ends_with("scale")) Fail(tensor.name, "not part of the architecture " + std::string(architecture_->name));
  if (const std::string_view hf = FindName(architecture_->layer, stem); !hf.empty()) {
    if (hf.find("{}") != std::string_view::npos) {
      const int64_t heads = stem == "attn_q_norm" ? config.num_attention_heads : config.num_key_value_heads;
      AddStack(tensor, prefix, hf, suffix, heads, 0, tensor.shape.back());
      return;
    }
    if ((stem == "attn_k_b" || stem == "attn_v_b") && tensor.shape.size() == 3) {
      // The matrices of the heads, one below the other.
      Add(prefix + std::string(hf) + std::string(suffix),
          {.tensor = &tensor, .shape = {tensor.shape[0] * tensor.shape[1], tensor.shape[2]}});
      return;
    }
    const bool is_rotary = stem == "attn_q" || stem == "attn_k";
    Add(prefix + std::string(hf) + std::string(suffix),
        {.tensor = &tensor, .shape = own_shape, .interleaved_head_dim = is_rotary ? head_rows : 0});
    return;
  }
  if (const std::string_view hf = FindName(architecture_->experts, stem); !hf.empty()) {
    AddStack(tensor, prefix, hf, suffix, config.num_experts, 0, tensor.shape.size() > 1 ? tensor.shape[1] : 0);
    return;
  }
  if (stem == "attn_qkv" && !FindName(architecture_->layer, "attn_q").empty()) {
    const int64_t q = config.num_attention_heads * config.head_dim;
    const int64_t kv = config.num_key_value_heads * config.head_dim;
    const size_t row_dimension = suffix == ".bias" ? tensor.shape.size() - 1 : 0;
    if (tensor.shape.size() > 2 || tensor.shape[row_dimension] != q + 2 * kv) {
      Fail(tensor.name, "must have 1 or 2 dimensions and " + std::to_string(q + 2 * kv) + " rows");
    }
    const std::array<std::pair<const char*, int64_t>, 3> parts = {{{"attn_q", q}, {"attn_k", kv}, {"attn_v", kv}}};
    int64_t row = 0;
    for (const auto& [part, rows] : parts) {
      std::vector<int64_t> shape = tensor.shape;
      shape[row_dimension] = rows;
      Add(prefix + std::string(FindName(architecture_->layer, part)) + std::string(suffix),
          {.tensor = &tensor,
           .first_row = row,
           .shape = shape,
           .interleaved_head_dim = std::string_view(part) == "attn_v" ? 0 : head_rows});
      row += rows;
    }
    return;
  }
  if (stem == "ffn_gate_up_exps" && !architecture_->experts.empty() && tensor.shape.size() == 3) {
    const int64_t rows = tensor.shape[1] / 2;
    AddStack(tensor, prefix, FindName(architecture_->experts, "ffn_gate_exps"), suffix, config.num_experts, 0, rows);
    AddStack(tensor, prefix, FindName(architecture_->experts, "ffn_up_exps"), suffix, config.num_experts, rows, rows);
    return;
  }
  // Old files have one tensor per expert: "ffn_gate.3".
  if (const size_t dot = stem.find('.'); dot != std::string_view::npos) {
    const std::string_view hf = FindName(architecture_->experts, std::string(stem.substr(0, dot)) + "_exps");
    const size_t placeholder = hf.find("{}");
    if (placeholder != std::string_view::npos) {
      int64_t expert = -1;
      const char* end = stem.data() + stem.size();
      const auto [parsed_end, error] = std::from_chars(stem.data() + dot + 1, end, expert);
      if (error != std::errc() || parsed_end != end || expert < 0 || expert >= config.num_experts) {
        Fail(tensor.name, "expert index is not a number below expert_count " + std::to_string(config.num_experts));
      }
      Add(prefix + std::string(hf.substr(0, placeholder)) + std::to_string(expert) +
              std::string(hf.substr(placeholder + 2)) + std::string(suffix),
          {.tensor = &tensor, .shape = tensor.shape});
      return;
    }
  }
  Fail(tensor.name, "not part of the architecture " + std::string(architecture_->name));
}

void GgufWeights::AddStack(const GgufTensor& tensor, const std::string& prefix, std::string_view pattern,
                           std::string_view suffix, int64_t count, int64_t first_row, int64_t num_rows) {
  if (tensor.shape.size() < 2 || tensor.shape.size() > 3 || tensor.shape[0] != count) {
    Fail(tensor.name, "must have 2 or 3 dimensions, the first of size " + std::to_string(count) + " (" +
                          ShapeText(tensor.shape) + ")");
  }
  const size_t placeholder = pattern.find("{}");
  for (int64_t i = 0; i < count; ++i) {
    Entry entry{.tensor = &tensor, .first_row = i * tensor.shape[1] + first_row};
    entry.shape = {num_rows};
    if (tensor.shape.size() == 3) entry.shape.push_back(tensor.shape[2]);
    Add(prefix + std::string(pattern.substr(0, placeholder)) + std::to_string(i) +
            std::string(pattern.substr(placeholder + 2)) + std::string(suffix),
        std::move(entry));
  }
}

void GgufWeights::Add(std::string name, Entry entry) {
  const GgufTensor& tensor = *entry.tensor;
  const bool is_vector = entry.shape.size() == 1;
  if (is_vector && (entry.interleaved_head_dim > 0 || entry.first_row > 0)) {
    // TensorView::Row treats a vector as one row and cannot reorder the elements, so they are copied in the model's
    // order.
    if (tensor.type->block_elements != 1) Fail(tensor.name, "a bias or norm must not be quantized");
    const size_t size = tensor.type->block_bytes;
    const TensorView elements{.name = {},
                              .type = kernels::WeightType::kUInt8,
                              .shape = {entry.shape[0], static_cast<int64_t>(size)},
                              .data = tensor.data.subspan(static_cast<size_t>(entry.first_row) * size),
                              .interleaved_head_dim = entry.interleaved_head_dim};
    if (entry.interleaved_head_dim > 0 && entry.shape[0] % entry.interleaved_head_dim != 0) {
      Fail(tensor.name, "number of rows is not a multiple of head_dim (" + ShapeText(tensor.shape) + ")");
    }
    entry.owned.resize(static_cast<size_t>(entry.shape[0]) * size);
    for (int64_t i = 0; i < entry.shape[0]; ++i) {
      std::memcpy(entry.owned.data() + static_cast<size_t>(i) * size, elements.Row(i), size);
    }
    entry.interleaved_head_dim = 0;
  }
  if (entry.interleaved_head_dim > 0 && entry.shape[0] % entry.interleaved_head_dim != 0) {
    Fail(tensor.name, "number of rows is not a multiple of head_dim (" + ShapeText(tensor.shape) + ")");
  }
  const auto [it, is_new] = tensors_.emplace(std::move(name), std::move(entry));
  if (!is_new) Fail(tensor.name, "another tensor already provides this weight (" + it->first + ")");
}

TensorView GgufWeights::Get(std::string_view name, std::span<const int64_t> shape) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) Fail(name, "not in the file");
  const Entry& entry = it->second;
  const std::span<const int64_t> stored = WithoutLeadingOnes(entry.shape);
  const std::span<const int64_t> requested = WithoutLeadingOnes(shape);
  if (!std::equal(stored.begin(), stored.end(), requested.begin(), requested.end())) {
    Fail(name, "shape is " + ShapeText(entry.shape) + " but the model needs " + ShapeText(shape));
  }
  const GgmlType& type = *entry.tensor->type;
  if (!type.weight_type) {
    throw ModelError("tensor " + Escape(name) + " of " + Escape(file_.path()) + ": type is not supported (" +
                         std::string(type.name) + ")",
                     kTypeSuggestion);
  }
  TensorView view{.name = std::string(name),
                  .type = *type.weight_type,
                  .shape = {shape.begin(), shape.end()},
                  .data = entry.owned,
                  .interleaved_head_dim = entry.interleaved_head_dim,
                  .scale = entry.scale};
  if (entry.owned.empty()) {
    const auto row_bytes = static_cast<size_t>(BytesOf(view.type, entry.shape.back()));
    size_t rows = 1;
    for (size_t i = 0; i + 1 < entry.shape.size(); ++i) rows *= static_cast<size_t>(entry.shape[i]);
    view.data = entry.tensor->data.subspan(static_cast<size_t>(entry.first_row) * row_bytes, rows * row_bytes);
  }
  return view;
}

std::vector<std::string> GgufWeights::Names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const auto& [name, entry] : tensors_) names.push_back(name);
  return names;
}

int64_t GgufWeights::TotalBytes() const {
  int64_t total = 0;
  for (const GgufTensor* tensor : file_.tensors()) total += static_cast<int64_t>(tensor->data.size());
  return total;
}

void GgufWeights::Fail(std::string_view tensor, const std::string& why) const {
  throw ModelError("tensor " + Escape(tensor) + " of " + Escape(file_.path()) + ": " + why);
}

}  // namespace vllm
