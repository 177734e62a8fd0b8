#include "engine/model_loader/hf/encoder_config.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/config/escape.h"

namespace vllm {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxTypes = 1024;
constexpr int64_t kMaxLabels = 4096;
constexpr int64_t kMaxExperts = 4096;

struct FieldNames {
  std::string_view model_type;
  std::vector<std::pair<const char*, const char*>> names;  // the model type's own name, the standard name
};

const std::vector<FieldNames>& OtherNames() {
  static const std::vector<FieldNames> names = {
      {"distilbert",
       {{"dim", "hidden_size"},
        {"n_layers", "num_hidden_layers"},
        {"n_heads", "num_attention_heads"},
        {"hidden_dim", "intermediate_size"},
        {"activation", "hidden_act"}}},
      {"modernbert",
       {{"hidden_activation", "hidden_act"},
        {"norm_eps", "layer_norm_eps"},
        {"global_rope_theta", "rope_theta"},
        {"local_rope_theta", "rope_local_base_freq"}}},
      {"gpt_neox", {{"rotary_pct", "partial_rotary_factor"}, {"rotary_emb_base", "rope_theta"}}},
      {"nomic_bert",
       {{"n_embd", "hidden_size"},
        {"n_layer", "num_hidden_layers"},
        {"n_head", "num_attention_heads"},
        {"n_inner", "intermediate_size"},
        {"n_positions", "max_position_embeddings"},
        {"layer_norm_epsilon", "layer_norm_eps"},
        {"rotary_emb_base", "rope_theta"}}},
  };
  return names;
}

bool IsEncoderType(std::string_view model_type) {
  for (const std::string_view name : {"bert", "roberta", "xlm-roberta", "camembert", "distilbert", "electra", "mpnet",
                                      "modernbert", "nomic_bert", "gte", "new", "eurobert"}) {
    if (model_type == name) return true;
  }
  return false;
}

bool IsRoberta(std::string_view model_type) {
  return model_type == "roberta" || model_type == "xlm-roberta" || model_type == "camembert";
}

void RejectUnless(const ConfigFields& fields, const char* name, bool expected, const char* why) {
  if (fields.Bool(name).value_or(expected) != expected) fields.Reject(name, why);
}

// Every moe_every_n_layers-th layer has experts, beginning with the second.
void ReadNomicExperts(const ConfigFields& fields, ModelConfig& config) {
  const char* interval = "moe_every_n_layers";
  config.num_experts = fields.Int("num_experts", 0, kMaxExperts).value_or(0);
  const int64_t every = fields.Int(interval, 0, kMaxSize).value_or(0);
  if (config.num_experts == 0) {
    if (every > 0) fields.Reject(interval, "must be 0 without num_experts");
    return;
  }
  if (every < 2) fields.Reject(interval, "must be at least 2 with num_experts");
  if (config.gated_mlp) fields.Reject("activation_function", "must be gelu with num_experts");
  RejectUnless(fields, "expert_choice_router", false, "only routers that choose experts for each token are supported");
  // megablocks divides the weights by their sum, but the published code does not read this field.
  RejectUnless(fields, "moe_normalize_expert_weights", false, "only false is supported for this model_type");
  if (fields.Int("num_shared_experts", 0, kMaxExperts).value_or(0) != 0) {
    fields.Reject("num_shared_experts", "shared experts are not supported for this model_type");
  }
  if (fields.Double("ffn_div", 0.0, kMaxSize).value_or(1.0) != 1.0) {
    fields.Reject("ffn_div", "must be 1: experts are as wide as the MLPs of the other layers");
  }
  config.num_experts_per_tok = fields.RequiredInt("moe_top_k", 1, config.num_experts);
  config.moe_intermediate_size = config.intermediate_size;
}

// The files of nomic-embed-text-v1.5 and v2 describe their models with the fields of a more general one.
void ReadNomic(const ConfigFields& fields, ModelConfig& config) {
  RejectUnless(fields, "prenorm", false, "norms before the blocks are not supported for this model_type");
  RejectUnless(fields, "parallel_block", false, "parallel blocks are not supported for this model_type");
  RejectUnless(fields, "causal", false, "causal attention is not supported for this model_type");
  RejectUnless(fields, "rotary_emb_interleaved", false, "interleaved rotation is not supported for this model_type");
  RejectUnless(fields, "use_rms_norm", false, "RMS norms are not supported for this model_type");
  if (fields.Double("rotary_emb_fraction", 0.0, 1.0).value_or(1.0) != 1.0) {
    fields.Reject("rotary_emb_fraction", "only full rotation is supported for this model_type");
  }
  for (const char* name : {"rotary_emb_scale_base", "rotary_scaling_factor"}) {
    if (fields.Has(name)) fields.Reject(name, "scaled rotation is not supported for this model_type");
  }
  const std::string activation = fields.String("activation_function").value_or("swiglu");
  config.gated_mlp = activation != "gelu";
  if (config.gated_mlp && activation != "swiglu" && activation != "geglu") {
    fields.Reject("activation_function", "not gelu, geglu or swiglu");
  }
  config.attention_bias = fields.Bool("qkv_proj_bias").value_or(false);
  config.mlp_bias = fields.Bool("mlp_fc1_bias").value_or(false);
  if (fields.Bool("mlp_fc2_bias").value_or(false) != config.mlp_bias) {
    fields.Reject("mlp_fc2_bias", "must be mlp_fc1_bias");
  }
  ReadNomicExperts(fields, config);
}

// Returns true for jina-embeddings-v2-base-code, whose architecture in config.json is that of the other models. The
// repository of its code is named in the fields that transformers uses to find it.
bool HasJinaQkNorm(const ConfigFields& fields) {
  constexpr std::string_view kRepository = "jina-bert-v2-qk-post-norm";
  if (fields.String("_name_or_path").value_or("").find(kRepository) != std::string::npos) return true;
  if (!fields.Has("auto_map") || !fields.At("auto_map").is_object()) return false;
  const nlohmann::json& classes = fields.At("auto_map");
  return std::any_of(classes.begin(), classes.end(), [&](const nlohmann::json& name) {
    return name.is_string() && name.get_ref<const std::string&>().find(kRepository) != std::string::npos;
  });
}

// Returns the number of outputs of the model's classifier.
int64_t NumLabels(const ConfigFields& fields) {
  if (fields.Has("id2label") && fields.At("id2label").is_object() && !fields.At("id2label").empty()) {
    const size_t count = fields.At("id2label").size();
    if (count > static_cast<size_t>(kMaxLabels)) fields.Fail("id2label", "has more than 4096 labels");
    return static_cast<int64_t>(count);
  }
  return fields.Int("num_labels", 1, kMaxLabels).value_or(2);
}

// The function that sentence-transformers' CrossEncoder applies to the outputs of the classifier.
ClassifierConfig::Function ClassifierFunction(const ConfigFields& fields, int64_t num_labels) {
  std::optional<std::string> name = fields.String("sbert_ce_default_activation_function");
  if (fields.Has("sentence_transformers") && fields.At("sentence_transformers").is_object()) {
    const ConfigFields part = fields.Child("sentence_transformers");
    if (part.Has("activation_fn")) name = part.String("activation_fn");
  }
  if (name) {
    if (name->ends_with(".Identity")) return ClassifierConfig::Function::kNone;
    if (name->ends_with(".Sigmoid")) return ClassifierConfig::Function::kSigmoid;
    if (name->ends_with(".Softmax")) return ClassifierConfig::Function::kSoftmax;
    const char* const field = fields.Has("sbert_ce_default_activation_function")
                                  ? "sbert_ce_default_activation_function"
                                  : "sentence_transformers";
    fields.Fail(field, "unknown activation (" + Escape(*name, 80) + "; known: Identity, Sigmoid, Softmax)");
  }
  return num_labels == 1 ? ClassifierConfig::Function::kSigmoid : ClassifierConfig::Function::kSoftmax;
}

PoolerActivation ActivationOf(const ConfigFields& fields, const char* name, const char* standard) {
  const std::string text = fields.String(name).value_or(standard);
  if (text == "gelu") return PoolerActivation::kGelu;
  if (text == "gelu_new" || text == "gelu_pytorch_tanh") return PoolerActivation::kGeluTanh;
  if (text == "relu") return PoolerActivation::kRelu;
  if (text == "silu") return PoolerActivation::kSilu;
  if (text == "tanh") return PoolerActivation::kTanh;
  fields.Fail(name, "unknown activation (" + Escape(text, 60) + ")");
}

void ReadClassifier(const ConfigFields& fields, ModelConfig& config) {
  ClassifierConfig& classifier = config.pooler.classifier.emplace();
  const int64_t size = config.hidden_size;
  classifier.num_labels = NumLabels(fields);
  classifier.function = ClassifierFunction(fields, classifier.num_labels);
  const auto add = [&](std::string name, int64_t out, bool has_bias, PoolerActivation activation, std::string norm) {
    classifier.layers.push_back({std::move(name), size, out, has_bias, activation, std::move(norm)});
  };
  const auto add_last = [&](std::string name, bool has_bias) {
    add(std::move(name), classifier.num_labels, has_bias, PoolerActivation::kIdentity, "");
  };
  const std::string& type = config.model_type;
  if (type == "bert" || type == "gte" || type == "new") {
    add(type == "bert" ? "bert.pooler.dense" : "new.pooler.dense", size, true, PoolerActivation::kTanh, "");
    add_last("classifier", true);
  } else if (IsRoberta(type) || type == "mpnet" || type == "electra") {
    add("classifier.dense", size, true, type == "electra" ? PoolerActivation::kGelu : PoolerActivation::kTanh, "");
    add_last("classifier.out_proj", true);
  } else if (type == "distilbert") {
    add("pre_classifier", size, true, PoolerActivation::kRelu, "");
    add_last("classifier", true);
  } else if (type == "modernbert") {
    add("head.dense", size, fields.Bool("classifier_bias").value_or(false),
        ActivationOf(fields, "classifier_activation", "gelu"), "head.norm");
    add_last("classifier", true);
    const std::string pooling = fields.String("classifier_pooling").value_or("cls");
    if (pooling != "cls" && pooling != "mean") fields.Reject("classifier_pooling", "not cls or mean");
    config.pooler.types = {pooling == "cls" ? PoolingType::kCls : PoolingType::kMean};
  } else if (config.is_encoder) {
    fields.Fail("architectures", "classifiers of this model_type are not supported (" + Escape(type, 40) + ")");
  } else {
    add_last("score", false);
  }
  config.pooler.is_from_files = true;
}

}  // namespace

void AddStandardFieldNames(const std::string& model_type, nlohmann::json& config) {
  for (const FieldNames& entry : OtherNames()) {
    if (entry.model_type != model_type) continue;
    for (const auto& [own, standard] : entry.names) {
      if (config.contains(own) && !config.contains(standard)) config[standard] = config[own];
    }
  }
  if (model_type == "nomic_bert" && config.contains("activation_function") &&
      config["activation_function"].is_string()) {
    config["hidden_act"] = config["activation_function"] == "swiglu" ? "silu" : "gelu";
  }
}

void ReadEncoder(const ConfigFields& fields, ModelConfig& config) {
  const std::string& type = config.model_type;
  const bool is_gemma = type == "gemma3_text" && fields.Bool("use_bidirectional_attention").value_or(false);
  config.is_encoder = IsEncoderType(type) || is_gemma;
  if (!config.is_encoder || is_gemma || type == "eurobert") return;
  RejectUnless(fields, "is_decoder", false, "only encoders are supported for this model_type");
  RejectUnless(fields, "add_cross_attention", false, "cross-attention is not supported");
  const bool is_jina = config.architecture.starts_with("JinaBert");
  if (is_jina && fields.String("feed_forward_type").value_or("original") != "geglu") {
    fields.Reject("feed_forward_type", "not geglu");
  }
  const std::string positions = is_jina ? "alibi" : "absolute";
  if (fields.String("position_embedding_type").value_or("absolute") != positions && type != "gte" && type != "new") {
    fields.Reject("position_embedding_type", "only " + positions + " is supported");
  }
  config.type_vocab_size = fields.Int("type_vocab_size", 0, kMaxTypes).value_or(0);
  config.norm_bias = fields.Bool("norm_bias").value_or(true);
  if (type == "nomic_bert") ReadNomic(fields, config);
  config.use_qk_norm = is_jina && HasJinaQkNorm(fields);
  if (type == "distilbert") RejectUnless(fields, "sinusoidal_pos_embds", false, "only learned positions are supported");
  if (type == "electra" && fields.Int("embedding_size", 1, kMaxSize).value_or(128) != config.hidden_size) {
    fields.Reject("embedding_size", "must be the hidden_size");
  }
  if (type == "mpnet" && fields.Int("relative_attention_num_buckets", 1, kMaxSize).value_or(32) != 32) {
    fields.Reject("relative_attention_num_buckets", "not 32");
  }
  if (!IsRoberta(type) && type != "mpnet") return;
  // The rows up to that of the padding token are not used. In MPNet, it is always 1.
  const int64_t padding = type == "mpnet" ? 1 : fields.Int("pad_token_id", 0, kMaxSize).value_or(1);
  config.position_offset = padding + 1;
  config.max_position_embeddings -= config.position_offset;
  if (config.max_position_embeddings < 1) fields.Reject("max_position_embeddings", "not above pad_token_id + 1");
  config.max_model_len = config.max_position_embeddings;
}

void ReadEncoderLayers(const ConfigFields& fields, ModelConfig& config) {
  if (!config.is_encoder) return;
  // Half of the window is on each side of a token.
  for (LayerConfig& layer : config.layers) {
    if (layer.sliding_window > 0) layer.sliding_window = layer.sliding_window / 2 + 1;
  }
  if (config.model_type == "nomic_bert" && config.num_experts > 0) {
    const int64_t every = fields.RequiredInt("moe_every_n_layers", 2, kMaxSize);
    for (size_t i = 0; i < config.layers.size(); ++i) config.layers[i].is_moe = static_cast<int64_t>(i) % every == 1;
  }
  if (config.model_type != "modernbert") return;
  const int64_t window = fields.Int("local_attention", 1, kMaxSize).value_or(128) / 2 + 1;
  const int64_t interval = fields.Int("global_attn_every_n_layers", 1, kMaxSize).value_or(3);
  const std::vector<std::string> types = fields.Strings("layer_types");
  if (!types.empty() && types.size() < config.layers.size())
    fields.Reject("layer_types", "fewer entries than num_hidden_layers");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    bool is_local = static_cast<int64_t>(i) % interval != 0;
    if (!types.empty()) {
      is_local = types[i] == "sliding_attention";
      if (!is_local && types[i] != "full_attention") {
        fields.Fail("layer_types",
                    "unknown layer type (" + Escape(types[i], 60) + "; known: full_attention, sliding_attention)");
      }
    }
    config.layers[i].sliding_window = is_local ? window : 0;
    config.layers[i].use_local_rope = is_local;
  }
}

void ReadHead(const ConfigFields& fields, ModelConfig& config) {
  config.pooler.matryoshka_dimensions = fields.Ints("matryoshka_dimensions", 1, kMaxSize);
  const std::string_view name = config.architecture;
  const bool is_classifier = name.ends_with("ForSequenceClassification");
  config.can_generate = !config.is_encoder && !is_classifier && !name.ends_with("Model");
  if (config.can_generate || name.ends_with("LMHeadModel")) {
    config.can_generate = !config.is_encoder;
    if (config.can_generate) return;
  }
  // There is no output projection, so its tensor is not looked for.
  config.tie_word_embeddings = true;
  if (config.is_encoder) config.pooler.types = {PoolingType::kCls};
  if (is_classifier) ReadClassifier(fields, config);
}

}  // namespace vllm
