#include "engine/model_loader/gguf/config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/config/max_model_len.h"
#include "engine/model_loader/gguf/architecture.h"
#include "engine/model_loader/gguf/encoder.h"
#include "engine/model_loader/gguf/gemma3n.h"
#include "engine/model_loader/gguf/gemma4.h"
#include "engine/model_loader/gguf/hybrid.h"
#include "engine/model_loader/gguf/mla.h"
#include "engine/model_loader/gguf/rope.h"
#include "engine/model_loader/gguf/tokenizer.h"

namespace vllm {
namespace {

// The same limits as LoadModelConfig's.
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHeads = 1024;
constexpr int64_t kMaxHeadDim = int64_t{1} << 16;
constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxExperts = 4096;
constexpr int64_t kMaxExpertSize = int64_t{1} << 20;
constexpr int64_t kMaxSharedExperts = 16;
constexpr double kMaxScale = 1e6;

class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, const GgufArchitecture& architecture)
      : file_(file), keys_(file.metadata()), architecture_(architecture) {}

  ModelConfig Read() {
    ReadNames();
    ReadSizes();
    ReadExperts();
    if (HasMLA()) ReadGgufMLAExperts(file_, config_);
    ReadLinearAttention();
    if (IsHybrid()) ReadGgufHybrid(file_, architecture_.hybrid, config_);
    ReadWindows();
    ReadScales();
    if (IsGemma4()) {
      ReadGgufGemma4(file_, config_);
    } else if (HasAttention()) {
      ReadGgufRope(file_, config_);
    }
    if (architecture_.name == "gemma3n") ReadGgufGemma3n(file_, config_);
    ReadSwitches();
    ReadGgufPooling(keys_, config_);
    if (IsGgufEncoder(architecture_.name)) ReadGgufEncoder(file_, config_);
    ReadGgufReranker(file_, config_);
    config_.max_model_len = DerivedMaxModelLen(config_);
    config_.has_block_weights = std::any_of(file_.tensors().begin(), file_.tensors().end(),
                                            [](const GgufTensor* tensor) { return tensor->type->block_elements > 1; });
    config_.checkpoint_dtype = DominantDType();
    config_.dtype = config_.checkpoint_dtype;
    config_.eos_token_ids = GgufStopIds(keys_, config_.vocab_size);
    config_.bos_token_id = GgufBosId(keys_, config_.vocab_size);
    return std::move(config_);
  }

 private:
  bool IsGemma4() const { return architecture_.name == "gemma4"; }
  bool HasMLA() const { return architecture_.name == "deepseek2"; }
  bool IsHybrid() const { return architecture_.hybrid != GgufHybrid::kNone; }
  // Mamba-2 has no attention and no MLP. The converter writes 0 heads.
  bool HasAttention() const { return architecture_.hybrid != GgufHybrid::kOnlyMamba2; }
  std::string Key(std::string_view name) const { return std::string(architecture_.name) + "." + std::string(name); }

  // Reads a number, or an array with one number per layer. All numbers of the array must be equal; in files of hybrid
  // models, they may also be 0.
  std::optional<int64_t> UniformInt(std::string_view name, int64_t low, int64_t high) const {
    const std::string key = Key(name);
    if (!keys_.IsArray(key)) return keys_.Int(key, low, high);
    const std::vector<int32_t> values = keys_.Ints(key);
    if (values.empty()) keys_.Fail(key, "must not be empty");
    int32_t common = values[0];
    for (const int32_t value : values) {
      if (IsHybrid() && value == 0) continue;
      if (IsHybrid() && common == 0) common = value;
      // ReadGgufGemma4 reads the values of each layer.
      if (value != common && !IsGemma4()) keys_.Fail(key, "values that differ between layers are not supported");
    }
    if (IsHybrid() && common == 0) return std::nullopt;
    if (!(common >= low && common <= high)) {
      keys_.Fail(
          key, "outside " + std::to_string(low) + " to " + std::to_string(high) + " (" + std::to_string(common) + ")");
    }
    return common;
  }

  int64_t RequiredUniformInt(std::string_view name, int64_t low, int64_t high) const {
    const std::optional<int64_t> value = UniformInt(name, low, high);
    if (!value) keys_.Fail(Key(name), "missing");
    return *value;
  }

  void ReadNames() {
    config_.model = file_.path();
    config_.gguf_file = file_.path();
    const std::filesystem::path directory = std::filesystem::path(file_.path()).parent_path();
    config_.directory = directory.empty() ? "." : directory.string();
    config_.architecture = architecture_.hf_architecture;
    config_.model_type = architecture_.model_type;
    config_.hidden_act = architecture_.hidden_act;
    if (!keys_.Bool(Key("attention.causal")).value_or(true) && !IsGgufEncoder(architecture_.name)) {
      keys_.Fail(Key("attention.causal"), "is false, but this architecture is supported only with causal attention");
    }
  }

  void ReadSizes() {
    config_.hidden_size = keys_.RequiredInt(Key("embedding_length"), 1, kMaxSize);
    const int64_t num_blocks = keys_.RequiredInt(Key("block_count"), 1, kMaxLayers);
    // The last blocks predict further tokens (MTP) and are not used.
    config_.num_hidden_layers = num_blocks - keys_.Int(Key("nextn_predict_layers"), 0, num_blocks - 1).value_or(0);
    config_.max_position_embeddings = keys_.RequiredInt(Key("context_length"), 1, kMaxSize);
    if (HasAttention()) ReadHeads();
    config_.intermediate_size = HasAttention() ? UniformInt("feed_forward_length", 0, kMaxSize).value_or(0) : 0;
    // Phi-MoE has layer norms, but the key of RMS norms.
    const bool is_layer_norm = architecture_.layer_norm && architecture_.name != "phimoe";
    const std::string eps = Key(is_layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon");
    const std::optional<double> value = keys_.PositiveDouble(eps, 1.0);
    if (!value) keys_.Fail(eps, "missing");
    config_.rms_norm_eps = *value;
    config_.vocab_size = ReadVocabSize();
    config_.layers.assign(static_cast<size_t>(config_.num_hidden_layers), {});
  }

  void ReadHeads() {
    config_.num_attention_heads = RequiredUniformInt("attention.head_count", 1, kMaxHeads);
    config_.num_key_value_heads =
        UniformInt("attention.head_count_kv", 1, kMaxHeads).value_or(config_.num_attention_heads);
    if (config_.num_attention_heads % config_.num_key_value_heads != 0) {
      keys_.Fail(Key("attention.head_count_kv"), "does not divide attention.head_count " +
                                                     std::to_string(config_.num_attention_heads) + " (" +
                                                     std::to_string(config_.num_key_value_heads) + ")");
    }
    if (HasMLA()) {
      ReadGgufMLASizes(keys_, config_);
    } else {
      ReadHeadDim();
    }
  }

  void ReadHeadDim() {
    const std::string key = Key("attention.key_length");
    if (const std::optional<int64_t> length = keys_.Int(key, 1, kMaxHeadDim)) {
      config_.head_dim = *length;
    } else {
      if (config_.hidden_size % config_.num_attention_heads != 0) {
        keys_.Fail(Key("attention.head_count"), "does not divide embedding_length " +
                                                    std::to_string(config_.hidden_size) + " (" +
                                                    std::to_string(config_.num_attention_heads) + ")");
      }
      config_.head_dim = config_.hidden_size / config_.num_attention_heads;
    }
    if (config_.head_dim % 2 != 0)
      keys_.Fail(key, "head dimension is not even (" + std::to_string(config_.head_dim) + ")");
    const std::string value_key = Key("attention.value_length");
    const int64_t value_length = keys_.Int(value_key, 1, kMaxHeadDim).value_or(config_.head_dim);
    if (value_length != config_.head_dim) {
      keys_.Fail(value_key, "is " + std::to_string(value_length) + " but must equal the head dimension of the keys");
    }
  }

  // Returns the number of rows of the embedding. If the file has no tensors, returns the value of the key vocab_size
  // or, if that is missing, the number of tokens. Converters truncate or pad vocabularies, so vocab_size may differ
  // from the number of rows.
  int64_t ReadVocabSize() const {
    const std::optional<int64_t> declared = keys_.Int(Key("vocab_size"), 1, kMaxSize);
    const auto num_tokens =
        static_cast<int64_t>(std::min<uint64_t>(keys_.Count("tokenizer.ggml.tokens"), kMaxSize + 1));
    if (file_.tensors().empty()) {
      const int64_t size = declared.value_or(num_tokens);
      if (!(size >= 1 && size <= kMaxSize))
        keys_.Fail(Key("vocab_size"), "missing, and tokenizer.ggml.tokens is missing, empty or too long");
      return size;
    }
    const GgufTensor* embedding = file_.Find("token_embd.weight");
    if (embedding == nullptr) keys_.Fail("tensor token_embd.weight", "missing");
    if (embedding->shape.size() != 2 || embedding->shape[1] != config_.hidden_size || embedding->shape[0] > kMaxSize) {
      keys_.Fail("tensor token_embd.weight",
                 "must be a matrix of at most 2^24 rows, and its inner dimension must be embedding_length " +
                     std::to_string(config_.hidden_size));
    }
    if (num_tokens > 0 && num_tokens != embedding->shape[0]) {
      keys_.Fail("tokenizer.ggml.tokens", "must have " + std::to_string(embedding->shape[0]) +
                                              " entries, one per embedding row (" + std::to_string(num_tokens) + ")");
    }
    return embedding->shape[0];
  }

  void ReadExperts() {
    config_.num_experts = keys_.Int(Key("expert_count"), 0, kMaxExperts).value_or(0);
    if (config_.num_experts == 0) {
      if (config_.intermediate_size == 0 && architecture_.hybrid != GgufHybrid::kOneBlock && HasAttention()) {
        keys_.Fail(Key("feed_forward_length"), "missing");
      }
      // The MLP of Granite 4 without experts is stored as that which all tokens share.
      if (architecture_.name == "granitehybrid") config_.shared_expert_intermediate_size = config_.intermediate_size;
      return;
    }
    if (architecture_.experts.empty()) keys_.Fail(Key("expert_count"), "this architecture has no experts");
    config_.num_experts_per_tok = keys_.RequiredInt(Key("expert_used_count"), 1, config_.num_experts);
    config_.moe_intermediate_size =
        UniformInt("expert_feed_forward_length", 1, kMaxSize).value_or(config_.intermediate_size);
    if (config_.moe_intermediate_size == 0) keys_.Fail(Key("expert_feed_forward_length"), "missing");
    if (config_.intermediate_size == 0) config_.intermediate_size = config_.moe_intermediate_size;
    config_.shared_expert_intermediate_size =
        keys_.Int(Key("expert_shared_feed_forward_length"), 0, kMaxSize).value_or(0);
    // GGUF files of these architectures do not contain this setting. As in llama.cpp, Qwen2-MoE and OLMoE do not
    // normalize the routing weights, and the others do.
    config_.norm_topk_prob = architecture_.name != "qwen2moe" && architecture_.name != "olmoe";
    for (LayerConfig& layer : config_.layers) layer.is_moe = true;
    ReadSharedExperts();
  }

  // Reads the keys of experts in the style of DeepSeek-V3.
  void ReadGroups() {
    const std::string gating = Key("expert_gating_func");
    constexpr int64_t kSigmoid = 2;
    if (!HasMLA() && keys_.Int(gating, 0, 16).value_or(kSigmoid) != kSigmoid) {
      keys_.Fail(gating, "only sigmoid (2) is supported");
    }
    config_.norm_topk_prob = keys_.Bool(Key("expert_weights_norm")).value_or(false);
    config_.routed_scaling_factor = keys_.PositiveDouble(Key("expert_weights_scale"), kMaxScale).value_or(1.0);
    const std::string groups = Key("expert_group_count");
    config_.n_group = keys_.Int(groups, 1, config_.num_experts).value_or(1);
    config_.topk_group = keys_.Int(Key("expert_group_used_count"), 1, config_.n_group).value_or(config_.n_group);
    const int64_t size = config_.num_experts / config_.n_group;
    if (config_.num_experts % config_.n_group != 0 || (config_.n_group > 1 && size < 2) ||
        config_.num_experts_per_tok > config_.topk_group * size) {
      keys_.Fail(groups, "does not fit expert_count " + std::to_string(config_.num_experts) +
                             " and expert_used_count " + std::to_string(config_.num_experts_per_tok) + " (" +
                             std::to_string(config_.n_group) + ")");
    }
  }

  // Reads the keys of architectures whose shared experts have no gate.
  void ReadSharedExperts() {
    const bool has_groups = architecture_.name == "glm4moe" || architecture_.name == "bailingmoe2" || HasMLA();
    const bool is_bailing = architecture_.name == "bailingmoe";
    if (is_bailing) {
      constexpr int64_t kSoftmax = 1;
      const std::string gating = Key("expert_gating_func");
      if (keys_.Int(gating, 0, 16).value_or(kSoftmax) != kSoftmax) keys_.Fail(gating, "only softmax (1) is supported");
      config_.norm_topk_prob = keys_.Bool(Key("expert_weights_norm")).value_or(false);
    }
    if (has_groups || architecture_.name == "nemotron_h_moe") ReadGroups();
    if (architecture_.name == "lfm2moe") {
      config_.routed_scaling_factor = keys_.PositiveDouble(Key("expert_weights_scale"), kMaxScale).value_or(1.0);
    }
    if (architecture_.name == "nemotron_h_moe") {
      config_.moe_latent_size = keys_.Int(Key("moe_latent_size"), 0, kMaxSize).value_or(0);
    }
    // GGUF files do not contain this setting. All published models have this value.
    if (architecture_.name == "phimoe") config_.router_jitter_noise = 0.01;
    if (architecture_.name != "ernie4_5-moe" && !is_bailing && !has_groups) return;
    const int64_t count = keys_.Int(Key("expert_shared_count"), 0, kMaxSharedExperts).value_or(0);
    if (config_.moe_intermediate_size > kMaxExpertSize) {
      keys_.Fail(Key("expert_feed_forward_length"), "above " + std::to_string(kMaxExpertSize));
    }
    if (config_.shared_expert_intermediate_size == 0 || architecture_.name == "bailingmoe2") {
      config_.shared_expert_intermediate_size = count * config_.moe_intermediate_size;
    }
    config_.moe_norm_min = 1e-12;
    const int64_t step = keys_.Int(Key("interleave_moe_layer_step"), 1, kMaxLayers).value_or(1);
    const int64_t num_dense = keys_.Int(Key("leading_dense_block_count"), 0, kMaxLayers).value_or(0);
    for (int64_t i = 0; i < config_.num_hidden_layers; ++i) {
      config_.layers[static_cast<size_t>(i)].is_moe = i >= num_dense && (i + 1) % step == 0;
    }
  }

  void ReadLinearAttention() {
    if (!architecture_.linear_attention) return;
    constexpr int64_t kMaxTaps = 64;
    constexpr int64_t kMaxLinearHeadDim = 4096;
    config_.linear_conv_kernel_dim = keys_.RequiredInt(Key("ssm.conv_kernel"), 1, kMaxTaps);
    config_.linear_key_head_dim = keys_.RequiredInt(Key("ssm.state_size"), 1, kMaxLinearHeadDim);
    config_.linear_num_key_heads = keys_.RequiredInt(Key("ssm.group_count"), 1, kMaxHeads);
    config_.linear_num_value_heads = keys_.RequiredInt(Key("ssm.time_step_rank"), 1, kMaxHeads);
    const std::string inner_key = Key("ssm.inner_size");
    const int64_t inner = keys_.RequiredInt(inner_key, 1, kMaxSize);
    if (config_.linear_num_value_heads % config_.linear_num_key_heads != 0) {
      keys_.Fail(Key("ssm.time_step_rank"), "not a multiple of ssm.group_count " +
                                                std::to_string(config_.linear_num_key_heads) + " (" +
                                                std::to_string(config_.linear_num_value_heads) + ")");
    }
    if (inner % config_.linear_num_value_heads != 0 || inner / config_.linear_num_value_heads > kMaxLinearHeadDim) {
      keys_.Fail(inner_key, "not a multiple of ssm.time_step_rank " + std::to_string(config_.linear_num_value_heads) +
                                ", or too large (" + std::to_string(inner) + ")");
    }
    config_.linear_value_head_dim = inner / config_.linear_num_value_heads;
    // The converter reorders the value heads of Qwen3.5.
    config_.linear_tiled_value_heads =
        architecture_.name != "qwen3next" && config_.linear_num_value_heads != config_.linear_num_key_heads;
    const int64_t interval = keys_.Int(Key("full_attention_interval"), 1, kMaxLayers).value_or(4);
    for (size_t i = 0; i < config_.layers.size(); ++i) {
      if ((static_cast<int64_t>(i) + 1) % interval != 0) config_.layers[i].mixer = LayerMixer::kLinearAttention;
    }
  }

  void ReadWindows() {
    const std::string key = Key("attention.sliding_window");
    const int64_t window =
        keys_.Int(key, 0, std::numeric_limits<uint32_t>::max()).value_or(architecture_.default_sliding_window);
    if (window == 0) return;
    // A file of OLMo 3 is an OLMo-2 file with sliding windows.
    if (architecture_.name == "olmo2") {
      config_.architecture = "Olmo3ForCausalLM";
      config_.model_type = "olmo3";
    }
    config_.sliding_window = window;
    const std::string pattern_key = Key("attention.sliding_window_pattern");
    if (keys_.IsArray(pattern_key)) {
      const std::vector<bool> is_sliding = keys_.Bools(pattern_key);
      if (is_sliding.size() < config_.layers.size()) keys_.Fail(pattern_key, "fewer entries than block_count");
      for (size_t i = 0; i < config_.layers.size(); ++i) config_.layers[i].sliding_window = is_sliding[i] ? window : 0;
    } else {
      const int64_t pattern = keys_.Int(pattern_key, 0, kMaxLayers).value_or(architecture_.sliding_window_pattern);
      for (size_t i = 0; i < config_.layers.size(); ++i) {
        const auto layer = static_cast<int64_t>(i);
        const bool is_sliding = pattern == 0 || layer % pattern < pattern - 1;
        config_.layers[i].sliding_window = is_sliding ? window : 0;
      }
    }
  }

  void ReadScales() {
    config_.attn_logit_softcapping = keys_.PositiveDouble(Key("attn_logit_softcapping"), kMaxScale);
    config_.final_logit_softcapping = keys_.PositiveDouble(Key("final_logit_softcapping"), kMaxScale);
    if (architecture_.name.starts_with("granite")) {
      config_.embedding_multiplier = keys_.PositiveDouble(Key("embedding_scale"), kMaxScale).value_or(1.0);
      config_.residual_multiplier = keys_.PositiveDouble(Key("residual_scale"), kMaxScale).value_or(1.0);
      config_.logits_scaling = keys_.PositiveDouble(Key("logit_scale"), kMaxScale).value_or(1.0);
      config_.attention_multiplier = keys_.PositiveDouble(Key("attention.scale"), kMaxScale);
    }
    if (architecture_.name == "gemma2" || config_.model_type == "gemma3_text") {
      // GGUF files do not contain this setting. Only the largest model of each generation has a value other than
      // head_dim.
      const bool largest = config_.num_hidden_layers == (architecture_.name == "gemma2" ? 46 : 62);
      config_.query_pre_attn_scalar =
          static_cast<double>(largest ? config_.hidden_size / config_.num_attention_heads : config_.head_dim);
    }
  }

  void ReadSwitches() {
    config_.tie_word_embeddings = file_.Find("output.weight") == nullptr;
    config_.lm_head_bias = file_.Find("output.bias") != nullptr;
    config_.use_parallel_residual = keys_.Bool(Key("use_parallel_residual")).value_or(architecture_.name == "gptneox");
    if (architecture_.name == "stablelm" || architecture_.name == "glm4moe" || architecture_.name == "bailingmoe2")
      config_.use_qk_norm = file_.Find("blk.0.attn_q_norm.weight") != nullptr;
    if (architecture_.name == "exaone4" && config_.sliding_window) {
      for (LayerConfig& layer : config_.layers) layer.use_rope = layer.sliding_window > 0;
    }
    // SmolLM3: every fourth layer has no rotary embedding.
    if (architecture_.name == "smollm3") {
      for (size_t i = 3; i < config_.layers.size(); i += 4) config_.layers[i].use_rope = false;
    }
  }

  kernels::DType DominantDType() const {
    size_t bytes[3] = {0, 0, 0};
    for (const GgufTensor* tensor : file_.tensors()) {
      const std::optional<kernels::DType> dtype =
          tensor->type->weight_type ? kernels::ToDType(*tensor->type->weight_type) : std::nullopt;
      if (tensor->shape.size() > 1 && dtype) bytes[static_cast<size_t>(*dtype)] += tensor->data.size();
    }
    const auto dominant = static_cast<kernels::DType>(std::max_element(bytes, bytes + 3) - bytes);
    // In a quantized file, only small or sensitive tensors, such as routers, are float32. Such tensors say nothing
    // about the model's dtype.
    if (config_.has_block_weights) return dominant == kernels::DType::kBFloat16 ? dominant : kernels::DType::kFloat16;
    return bytes[static_cast<size_t>(dominant)] == 0 ? kernels::DType::kFloat32 : dominant;
  }

  const GgufFile& file_;
  const GgufMetadata& keys_;
  const GgufArchitecture& architecture_;
  ModelConfig config_;
};

}  // namespace

ModelConfig ReadGgufConfig(const GgufFile& file) {
  const GgufMetadata& keys = file.metadata();
  const std::optional<std::string_view> name = keys.String("general.architecture");
  if (!name) keys.Fail("general.architecture", "missing");
  const bool has_experts = keys.Int(std::string(*name) + ".expert_count", 0, kMaxExperts).value_or(0) > 0;
  const GgufArchitecture* architecture = FindGgufArchitecture(*name, has_experts);
  if (architecture == nullptr) {
    keys.Fail("general.architecture", "unknown architecture (" + Escape(*name, 60) + ")");
  }
  return ConfigReader(file, *architecture).Read();
}

ModelConfig LoadGgufConfig(const std::string& path) { return ReadGgufConfig(GgufFile(path)); }

GenerationConfig LoadGgufGenerationConfig(const std::string& path) {
  const GgufFile file(path);
  const GgufMetadata& keys = file.metadata();
  GenerationConfig config;
  config.origin = "GGUF metadata";
  // The ranges are those of LoadGenerationConfig.
  config.temperature = keys.Double("general.sampling.temp", 0.0, 2.0);
  config.top_k = keys.Int("general.sampling.top_k", -1, std::numeric_limits<int32_t>::max());
  config.top_p = keys.PositiveDouble("general.sampling.top_p", 1.0);
  config.min_p = keys.Double("general.sampling.min_p", 0.0, 1.0);
  config.repetition_penalty =
      keys.PositiveDouble("general.sampling.penalty_repeat", std::numeric_limits<double>::max());
  return config;
}

std::string GgufQuantization(const GgufFile& file) {
  std::map<std::string_view, size_t> bytes;
  for (const GgufTensor* tensor : file.tensors()) {
    if (tensor->type->block_elements > 1) bytes[tensor->type->name] += tensor->data.size();
  }
  if (bytes.empty()) return "none";
  const auto dominant =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  // llama.cpp's names for mixtures of block types, by general.file_type.
  constexpr std::array<std::pair<int64_t, std::string_view>, 7> kMixtures = {
      {{11, "Q3_K_S"}, {12, "Q3_K_M"}, {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"}, {16, "Q5_K_S"}, {17, "Q5_K_M"}}};
  const int64_t file_type = file.metadata().Int("general.file_type", 0, 1 << 20).value_or(0);
  for (const auto& [number, name] : kMixtures) {
    if (number == file_type && name.starts_with(dominant->first)) return std::string(name);
  }
  return std::string(dominant->first);
}

int64_t CountParameters(const GgufFile& file) {
  int64_t count = 0;
  for (const GgufTensor* tensor : file.tensors()) {
    if (!tensor->name.starts_with("rope_")) count += tensor->num_elements();
  }
  return count;
}

}  // namespace vllm
