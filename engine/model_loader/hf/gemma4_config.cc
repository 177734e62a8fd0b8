#include "engine/model_loader/hf/gemma4_config.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/config/escape.h"

namespace vllm {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxHeads = 1024;
constexpr int64_t kMaxHeadDim = int64_t{1} << 16;
constexpr int64_t kMaxExperts = 4096;
constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;
constexpr double kMaxCap = 1e6;

constexpr const char* kRope = "rope_parameters";
constexpr const char* kPerLayer = "per_layer_config";

bool IsFull(const LayerConfig& layer) { return layer.sliding_window == 0; }

std::string RopeType(const ConfigFields& part, bool allows_proportional) {
  const char* name = "rope_type";
  std::string type = part.String(name).value_or("default");
  if (type == "default" || (type == "proportional" && allows_proportional)) return type;
  part.Fail(name, "unsupported scaling type (" + Escape(type, 40) + "; supported: default" +
                      (allows_proportional ? ", proportional" : "") + ")");
}

void ReadFullRope(const ConfigFields& part, ModelConfig& config) {
  config.rope_theta = part.RequiredPositiveDouble("rope_theta", kMaxTheta);
  const char* partial = "partial_rotary_factor";
  const double rotated = part.Double(partial, 0.0, 1.0).value_or(1.0);
  RopeScaling& scaling = config.rope_scaling;
  scaling = {};
  if (RopeType(part, true) == "proportional") {
    scaling.kind = RopeScaling::Kind::kProportional;
    scaling.partial_rotary_factor = rotated;
    scaling.factor = part.PositiveDouble("factor", kMaxFactor).value_or(1.0);
  } else if (rotated != 1.0) {
    part.Reject(partial, "is only supported with rope_type proportional");
  }
}

void ReadSlidingRope(const ConfigFields& part, ModelConfig& config) {
  config.rope_local_theta = part.RequiredPositiveDouble("rope_theta", kMaxTheta);
  RopeType(part, false);
  const char* partial = "partial_rotary_factor";
  if (part.Double(partial, 0.0, 1.0).value_or(1.0) != 1.0) {
    part.Reject(partial, "is not supported for sliding_attention layers");
  }
}

// Sets the heads of one layer to those of its entry in per_layer_config.
void ReadLayerHeads(const ConfigFields& part, const nlohmann::json& overrides, int64_t& head_dim, int64_t& kv_heads) {
  for (const auto& [name, value] : overrides.items()) {
    if (name != "head_dim" && name != "num_key_value_heads") {
      part.Fail(Escape(name, 60).c_str(),
                "settings of single layers other than head_dim and num_key_value_heads are "
                "not supported");
    }
  }
  head_dim = part.Int("head_dim", 1, kMaxHeadDim).value_or(head_dim);
  kv_heads = part.Int("num_key_value_heads", 1, kMaxHeads).value_or(kv_heads);
}

// Reads per_layer_config: a map from the indexes of layers, as strings, to their settings. All full-attention layers
// must have the same heads, and the other layers must have those of the whole model.
void ReadPerLayerConfig(const ConfigFields& fields, ModelConfig& config) {
  const ConfigFields per_layer = fields.Child(kPerLayer);
  const auto num_layers = static_cast<int64_t>(config.layers.size());
  std::vector<int64_t> head_dims(config.layers.size(), config.head_dim);
  std::vector<int64_t> kv_heads(config.layers.size(), config.num_key_value_heads);
  for (const auto& [key, value] : fields.At(kPerLayer).items()) {
    int64_t layer = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), layer);
    if (error != std::errc() || end != key.data() + key.size() || layer < 0 || layer >= num_layers) {
      per_layer.Fail(Escape(key, 60).c_str(), "must be the index of a layer, below " + std::to_string(num_layers));
    }
    const auto i = static_cast<size_t>(layer);
    ReadLayerHeads(per_layer.Child(key.c_str()), value, head_dims[i], kv_heads[i]);
  }
  const auto first_full =
      static_cast<size_t>(std::find_if(config.layers.begin(), config.layers.end(), IsFull) - config.layers.begin());
  config.global_head_dim = head_dims[first_full];
  config.num_global_key_value_heads = kv_heads[first_full];
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (head_dims[i] == config.HeadDim(config.layers[i]) && kv_heads[i] == config.NumKVHeads(config.layers[i]))
      continue;
    per_layer.Fail(std::to_string(i).c_str(), "heads that differ between layers of one type are not supported");
  }
}

void ReadGlobalHeads(const ConfigFields& fields, bool values_are_keys, ModelConfig& config) {
  if (fields.Has(kPerLayer)) {
    ReadPerLayerConfig(fields, config);
  } else {
    config.global_head_dim = fields.Int("global_head_dim", 1, kMaxHeadDim).value_or(512);
    // Without attention_k_eq_v, all layers have the same number of KV heads, and transformers ignores this field.
    const std::optional<int64_t> kv_heads = fields.Int("num_global_key_value_heads", 1, kMaxHeads);
    config.num_global_key_value_heads = values_are_keys ? kv_heads.value_or(0) : 0;
  }
  const int64_t heads = config.num_attention_heads;
  const char* name = fields.Has(kPerLayer) ? kPerLayer : "num_global_key_value_heads";
  if (const int64_t kv = config.num_global_key_value_heads; kv > 0 && heads % kv != 0) {
    fields.Fail(name, "number of KV heads does not divide num_attention_heads " + std::to_string(heads) + " (" +
                          std::to_string(kv) + ")");
  }
  if (config.global_head_dim % 2 != 0) {
    fields.Fail(fields.Has(kPerLayer) ? kPerLayer : "global_head_dim",
                "head dimension is not even (" + std::to_string(config.global_head_dim) + ")");
  }
}

void ReadSharedLayers(const ConfigFields& fields, ModelConfig& config) {
  const char* name = "num_kv_shared_layers";
  const int64_t num_shared = fields.Int(name, 0, config.num_hidden_layers).value_or(0);
  if (!ShareKV(num_shared, config))
    fields.Reject(name, "a shared layer has no layer of its type before the shared ones");
  if (!fields.Bool("use_double_wide_mlp").value_or(false)) return;
  for (LayerConfig& layer : config.layers) {
    if (layer.kv_source_layer >= 0) layer.intermediate_size = 2 * config.intermediate_size;
  }
}

}  // namespace

bool ShareKV(int64_t num_shared, ModelConfig& config) {
  const auto num_layers = static_cast<int64_t>(config.layers.size());
  const int64_t first_shared = num_layers - num_shared;
  for (int64_t i = first_shared; i < num_layers; ++i) {
    LayerConfig& layer = config.layers[static_cast<size_t>(i)];
    int64_t source = first_shared - 1;
    while (source >= 0 && IsFull(config.layers[static_cast<size_t>(source)]) != IsFull(layer)) --source;
    if (source < 0) return false;
    layer.kv_source_layer = source;
  }
  return true;
}

void ReadGemma4Rope(const ConfigFields& fields, ModelConfig& config) {
  config.rotary_dim = config.head_dim;
  config.rope_theta = 1e6;
  config.rope_local_theta = 1e4;
  config.rope_scaling.kind = RopeScaling::Kind::kProportional;
  config.rope_scaling.partial_rotary_factor = 0.25;
  if (fields.Has("rope_scaling")) fields.Fail("rope_scaling", "not supported for this model_type; use rope_parameters");
  if (!fields.Has(kRope)) return;
  const ConfigFields part = fields.Child(kRope);
  if (!part.Has("full_attention")) part.Fail("full_attention", "missing");
  ReadFullRope(part.Child("full_attention"), config);
  if (part.Has("sliding_attention")) ReadSlidingRope(part.Child("sliding_attention"), config);
}

void ReadGemma4(const ConfigFields& fields, ModelConfig& config) {
  if (const auto name = fields.String("hidden_activation")) config.hidden_act = *name;
  // "vision" concerns only the tokens of images.
  const char* bidirectional = "use_bidirectional_attention";
  if (fields.Has(bidirectional) && fields.At(bidirectional) != "vision" && fields.At(bidirectional) != false) {
    fields.Reject(bidirectional, "only causal attention is supported");
  }
  config.final_logit_softcapping = fields.PositiveDouble("final_logit_softcapping", kMaxCap);
  config.hidden_size_per_layer_input = fields.Int("hidden_size_per_layer_input", 0, kMaxHeadDim).value_or(0);
  if (config.hidden_size_per_layer_input > 0) {
    const char* vocab = "vocab_size_per_layer_input";
    config.vocab_size_per_layer_input = fields.RequiredInt(vocab, 1, kMaxSize);
    if (config.vocab_size_per_layer_input < config.vocab_size) {
      fields.Reject(vocab, "below vocab_size " + std::to_string(config.vocab_size));
    }
  }
  if (!fields.Bool("enable_moe_block").value_or(false)) return;
  config.num_experts = fields.RequiredInt("num_experts", 1, kMaxExperts);
  config.num_experts_per_tok = fields.RequiredInt("top_k_experts", 1, config.num_experts);
  config.moe_intermediate_size = fields.RequiredInt("moe_intermediate_size", 1, kMaxSize);
  config.norm_topk_prob = true;
}

void ReadGemma4Layers(const ConfigFields& fields, ModelConfig& config) {
  fields.RequiredInt("sliding_window", 1, kMaxSize);
  if (fields.Has("layer_types") && fields.Strings("layer_types").size() != config.layers.size()) {
    fields.Fail("layer_types", "must have num_hidden_layers " + std::to_string(config.layers.size()) + " entries (" +
                                   std::to_string(fields.Strings("layer_types").size()) + ")");
  }
  // As in transformers, the last layer has full attention, even if layer_types says that it is sliding.
  config.layers.back().sliding_window = 0;
  config.layers.back().use_local_rope = false;
  const bool values_are_keys = fields.Bool("attention_k_eq_v").value_or(false);
  bool has_sliding = false;
  for (LayerConfig& layer : config.layers) {
    has_sliding = has_sliding || !IsFull(layer);
    layer.values_are_keys = values_are_keys && IsFull(layer);
  }
  if (has_sliding && fields.Has(kRope) && !fields.Child(kRope).Has("sliding_attention")) {
    fields.Child(kRope).Fail("sliding_attention", "missing");
  }
  ReadGlobalHeads(fields, values_are_keys, config);
  ReadSharedLayers(fields, config);
}

}  // namespace vllm
