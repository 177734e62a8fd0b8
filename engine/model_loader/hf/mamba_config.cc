#include "engine/model_loader/hf/mamba_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/config/escape.h"

namespace vllm {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxTaps = 64;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxStateSize = 4096;
constexpr double kMaxMultiplier = 1e6;

// The names of the fields of Mamba-2, which differ between model types.
struct Names {
  const char* heads;
  const char* head_dim;
  const char* groups;
  const char* state;
  const char* conv;
};

void ReadMixer(const ConfigFields& fields, const Names& names, ModelConfig& config) {
  config.mamba_n_heads = fields.RequiredInt(names.heads, 1, kMaxHeads);
  config.mamba_n_groups = fields.RequiredInt(names.groups, 1, config.mamba_n_heads);
  config.mamba_d_state = fields.RequiredInt(names.state, 1, kMaxStateSize);
  config.mamba_d_conv = fields.RequiredInt(names.conv, 1, kMaxTaps);
  if (config.mamba_n_heads % config.mamba_n_groups != 0) {
    fields.Reject(names.groups,
                  "does not divide " + std::string(names.heads) + " " + std::to_string(config.mamba_n_heads));
  }
  // transformers applies other limits to prompts only. For no limit, it writes [0.0, {"__float__": "Infinity"}], and
  // older versions [0.0, Infinity].
  if (fields.Has("time_step_limit")) {
    const nlohmann::json& limit = fields.At("time_step_limit");
    const bool is_unlimited = limit.is_array() && limit.size() == 2 && limit[0] == 0.0 &&
                              (!limit[1].is_number() || std::isinf(limit[1].get<double>()));
    if (!is_unlimited) fields.Reject("time_step_limit", "only no limit is supported");
  }
}

// Sets the size of the heads, of which all together have `inner` channels. `what` describes `inner`.
void SetHeadDim(const ConfigFields& fields, const Names& names, int64_t inner, const std::string& what,
                ModelConfig& config) {
  if (inner % config.mamba_n_heads != 0) {
    fields.Reject(names.heads, "does not divide " + what + " " + std::to_string(inner));
  }
  config.mamba_d_head = inner / config.mamba_n_heads;
  const bool is_auto = !fields.Has(names.head_dim) || fields.At(names.head_dim).is_string();
  if (!is_auto && fields.RequiredInt(names.head_dim, 1, kMaxSize) != config.mamba_d_head) {
    fields.Reject(names.head_dim, what + " / " + names.heads + " is " + std::to_string(config.mamba_d_head));
  }
}

double Multiplier(const ConfigFields& fields, const char* name) {
  return fields.PositiveDouble(name, kMaxMultiplier).value_or(1.0);
}

template <size_t kCount>
std::array<double, kCount> Multipliers(const ConfigFields& fields, const char* name) {
  std::array<double, kCount> multipliers;
  multipliers.fill(1.0);
  if (!fields.Has(name)) return multipliers;
  const std::vector<double> values = fields.PositiveDoubles(name, kMaxMultiplier);
  if (values.size() != kCount) fields.Reject(name, "not a list of " + std::to_string(kCount) + " numbers");
  std::copy_n(values.begin(), kCount, multipliers.begin());
  return multipliers;
}

constexpr Names kGranite = {"mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv"};

}  // namespace

void ReadMamba2(const ConfigFields& fields, ModelConfig& config) {
  constexpr Names kNames = {"num_heads", "head_dim", "n_groups", "state_size", "conv_kernel"};
  ReadMixer(fields, kNames, config);
  SetHeadDim(fields, kNames, fields.RequiredInt("expand", 1, kMaxTaps) * config.hidden_size, "expand * hidden_size",
             config);
  config.mamba_conv_bias = fields.Bool("use_conv_bias").value_or(true);
  config.mamba_proj_bias = fields.Bool("use_bias").value_or(false);
  config.mamba_out_proj_bias = config.mamba_proj_bias;
}

void ReadGraniteMamba(const ConfigFields& fields, ModelConfig& config) {
  ReadMixer(fields, kGranite, config);
  SetHeadDim(fields, kGranite, fields.RequiredInt("mamba_expand", 1, kMaxTaps) * config.hidden_size,
             "mamba_expand * hidden_size", config);
  config.mamba_conv_bias = fields.Bool("mamba_conv_bias").value_or(true);
  config.mamba_proj_bias = fields.Bool("mamba_proj_bias").value_or(false);
  config.mamba_out_proj_bias = config.mamba_proj_bias;
}

void ReadFalconH1(const ConfigFields& fields, ModelConfig& config) {
  ReadMixer(fields, kGranite, config);
  if (fields.Has("mamba_d_ssm")) {
    SetHeadDim(fields, kGranite, fields.RequiredInt("mamba_d_ssm", 1, kMaxSize), "mamba_d_ssm", config);
  } else {
    SetHeadDim(fields, kGranite, fields.RequiredInt("mamba_expand", 1, kMaxTaps) * config.hidden_size,
               "mamba_expand * hidden_size", config);
  }
  config.mamba_conv_bias = fields.Bool("mamba_conv_bias").value_or(true);
  config.mamba_proj_bias = fields.Bool("mamba_proj_bias").value_or(false);
  config.mamba_out_proj_bias = fields.Bool("projectors_bias").value_or(false);
  config.mamba_rms_norm = fields.Bool("mamba_rms_norm").value_or(false);
  config.mamba_norm_before_gate = fields.Bool("mamba_norm_before_gate").value_or(true);
  if (!fields.Bool("mamba_use_mlp").value_or(true))
    fields.Reject("mamba_use_mlp", "layers without MLP are not supported");
  if (fields.Has("attn_layer_indices")) {
    fields.Reject("attn_layer_indices", "layers without attention are not supported");
  }
  config.embedding_multiplier = Multiplier(fields, "embedding_multiplier");
  FalconH1Multipliers& multipliers = config.falcon_h1;
  multipliers.attention_in = Multiplier(fields, "attention_in_multiplier");
  multipliers.attention_out = Multiplier(fields, "attention_out_multiplier");
  multipliers.key = Multiplier(fields, "key_multiplier");
  multipliers.ssm_in = Multiplier(fields, "ssm_in_multiplier");
  multipliers.ssm_out = Multiplier(fields, "ssm_out_multiplier");
  multipliers.lm_head = Multiplier(fields, "lm_head_multiplier");
  multipliers.ssm = Multipliers<5>(fields, "ssm_multipliers");
  const auto [gate, down] = Multipliers<2>(fields, "mlp_multipliers");
  multipliers.mlp_gate = gate;
  multipliers.mlp_down = down;
}

void ReadNemotronH(const ConfigFields& fields, ModelConfig& config) {
  // The names of files that were not written by transformers 5.
  const auto name = [&](const char* legacy, const char* current) { return fields.Has(legacy) ? legacy : current; };
  const Names names = {"mamba_num_heads", "mamba_head_dim", name("mamba_n_groups", "n_groups"), "ssm_state_size",
                       name("mamba_d_conv", "conv_kernel")};
  ReadMixer(fields, names, config);
  config.mamba_d_head = fields.RequiredInt(names.head_dim, 1, kMaxStateSize);
  config.mamba_conv_bias = fields.Bool(name("mamba_conv_bias", "use_conv_bias")).value_or(true);
  config.mamba_proj_bias = fields.Bool("use_bias").value_or(false);
  config.mamba_out_proj_bias = config.mamba_proj_bias;
  // Despite the name, transformers limits every time step to at least this.
  config.mamba_min_dt = fields.Double(name("mamba_dt_min", "time_step_min"), 0.0, kMaxMultiplier).value_or(0.0);
  config.hidden_act = fields.String("mlp_hidden_act").value_or("relu2");
  config.tie_word_embeddings = false;  // transformers ignores the field
  if (fields.String("mamba_hidden_act").value_or("silu") != "silu") {
    fields.Reject("mamba_hidden_act", "only silu is supported");
  }
  if (config.attention_bias)
    fields.Reject("attention_bias", "biases of attention are not supported for this model_type");
  if (fields.Int("attention_head_dim", 1, kMaxSize).value_or(config.head_dim) != config.head_dim) {
    fields.Reject("attention_head_dim", "not head_dim " + std::to_string(config.head_dim));
  }
  config.moe_latent_size = fields.Int("moe_latent_size", 1, kMaxSize).value_or(0);
}

void SetMambaLayers(ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    if (config.model_type == "falcon_h1") {
      layer.mixer = LayerMixer::kAttentionAndMamba2;
    } else {
      layer.mixer = LayerMixer::kMamba2;
      layer.use_rope = false;
      layer.has_mlp = false;
    }
  }
}

std::string NemotronHPattern(const ConfigFields& fields) {
  constexpr size_t kMaxLayers = 1024;
  const char* list = fields.Has("layers_block_type") ? "layers_block_type" : "layer_types";
  const char* name = fields.Has(list) ? list : "hybrid_override_pattern";
  std::string pattern;
  if (name == list) {
    for (const std::string& type : fields.Strings(name)) {
      if (type == "linear_attention" || type == "mamba") {
        pattern += 'M';
      } else if (type == "full_attention" || type == "attention") {
        pattern += '*';
      } else if (type == "mlp") {
        pattern += '-';
      } else if (type == "moe") {
        pattern += 'E';
      } else {
        fields.Fail(name,
                    "unknown layer type (" + Escape(type, 60) + "; known: full_attention, linear_attention, mlp, moe)");
      }
    }
  } else {
    pattern = fields.String(name).value_or("");
    if (pattern.find_first_not_of("M*-E") != std::string::npos) {
      fields.Fail(name, "unknown layer type (" + Escape(pattern, 60) + "; known: M, *, -, E)");
    }
  }
  if (pattern.empty()) fields.Fail(name, "missing or empty");
  if (pattern.size() > kMaxLayers) fields.Fail(name, "more than " + std::to_string(kMaxLayers) + " layers");
  return pattern;
}

void ReadNemotronHLayers(const ConfigFields& fields, ModelConfig& config) {
  const std::string pattern = NemotronHPattern(fields);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerConfig& layer = config.layers[i];
    layer.use_rope = false;
    layer.has_mlp = pattern[i] == '-' || pattern[i] == 'E';
    layer.is_moe = pattern[i] == 'E';
    layer.mixer = pattern[i] == 'M'   ? LayerMixer::kMamba2
                  : pattern[i] == '*' ? LayerMixer::kAttention
                                      : LayerMixer::kNone;
  }
}

}  // namespace vllm
