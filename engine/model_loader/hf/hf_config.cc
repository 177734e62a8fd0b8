#include "engine/model_loader/hf/hf_config.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/config/max_model_len.h"
#include "engine/model_loader/config_fields.h"
#include "engine/model_loader/hf/architecture_config.h"
#include "engine/model_loader/hf/encoder_config.h"
#include "engine/model_loader/hf/hf_defaults.h"
#include "engine/model_loader/hf/mamba_config.h"
#include "engine/model_loader/hf/mla_config.h"
#include "engine/model_loader/hf/rope_config.h"
#include "engine/model_loader/json_file.h"
#include "engine/model_loader/quantization/config_parser.h"

namespace vllm {
namespace {

constexpr size_t kMaxConfigBytes = size_t{16} << 20;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHeads = 1024;
constexpr int64_t kMaxHeadDim = int64_t{1} << 16;
constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxTokenId = std::numeric_limits<int32_t>::max();

// Returns the first of `names` that is present, or names[0] if none is.
const char* NameOf(const ConfigFields& fields, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (fields.Has(name)) return name;
  }
  return *names.begin();
}

std::string ReadArchitecture(const ConfigFields& fields) {
  const char* name = "architectures";
  if (!fields.Has(name)) fields.Fail(name, "missing");
  const nlohmann::json& list = fields.At(name);
  if (!list.is_array() || list.empty() || !list[0].is_string())
    fields.Reject(name, "not a list that begins with a name");
  return list[0].get<std::string>();
}

kernels::DType ReadDType(const ConfigFields& fields) {
  const char* name = NameOf(fields, {"dtype", "torch_dtype"});
  std::string text = fields.String(name).value_or("float32");
  if (text.starts_with("torch.")) text.erase(0, 6);
  for (kernels::DType dtype : {kernels::DType::kFloat32, kernels::DType::kFloat16, kernels::DType::kBFloat16}) {
    if (text == ToString(dtype)) return dtype;
  }
  fields.Reject(name, "not float32, float16 or bfloat16");
}

int64_t ReadIntermediateSize(const ConfigFields& fields, const ModelConfig& config) {
  const char* name = fields.Has("block_ff_dim")
                         ? "block_ff_dim"
                         : NameOf(fields, {"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"});
  const bool defaults_to_four_times = config.model_type == "gpt2" || config.model_type == "falcon";
  if (!fields.Has(name) && defaults_to_four_times) return 4 * config.hidden_size;
  // All layers of these models have experts.
  if (!fields.Has(name) && config.model_type == "qwen3_5_moe_text") return config.hidden_size;
  if (config.model_type == "gemma3n_text" && fields.Has(name) && fields.At(name).is_array()) {
    const std::vector<int64_t> widths = fields.Ints(name, 1, kMaxSize);
    if (widths.empty()) fields.Reject(name, "must not be empty");
    return widths[0];  // ReadGemma3nLayers reads the others
  }
  return fields.RequiredInt(name, 1, kMaxSize);
}

int64_t ReadKVHeads(const ConfigFields& fields, const ModelConfig& config) {
  const char* name = NameOf(fields, {"num_key_value_heads", "num_kv_heads"});
  if (config.model_type == "falcon" && !fields.Bool("new_decoder_architecture").value_or(false)) {
    if (fields.Bool("multi_query").value_or(true)) return 1;
  }
  const int64_t kv_heads = fields.Int(name, 1, kMaxHeads).value_or(config.num_attention_heads);
  if (config.num_attention_heads % kv_heads != 0) {
    const std::string why = "does not divide num_attention_heads " + std::to_string(config.num_attention_heads);
    fields.Reject(name, why);
  }
  return kv_heads;
}

void ReadSizes(const ConfigFields& fields, ModelConfig& config) {
  config.vocab_size = fields.RequiredInt("vocab_size", 1, kMaxSize);
  const char* hidden = NameOf(fields, {"hidden_size", "n_embd"});
  config.hidden_size = fields.RequiredInt(hidden, 1, kMaxSize);
  if (config.model_type == "nemotron_h") {
    config.num_hidden_layers = static_cast<int64_t>(NemotronHPattern(fields).size());
  } else {
    config.num_hidden_layers = fields.RequiredInt(NameOf(fields, {"num_hidden_layers", "n_layer"}), 1, kMaxLayers);
  }
  if (config.model_type == "mamba2") {
    config.max_position_embeddings = fields.Int("max_position_embeddings", 1, kMaxSize).value_or(kUnlimitedPositions);
    return;  // no attention and no MLP
  }
  config.intermediate_size = ReadIntermediateSize(fields, config);
  const char* heads = NameOf(fields, {"num_attention_heads", "n_head"});
  config.num_attention_heads = fields.RequiredInt(heads, 1, kMaxHeads);
  config.num_key_value_heads = ReadKVHeads(fields, config);
  if (HasMLA(config.model_type)) {
    ReadMLASizes(fields, config);
  } else if (std::optional<int64_t> head_dim = fields.Int("head_dim", 1, kMaxHeadDim)) {
    config.head_dim = *head_dim;
  } else {
    if (config.hidden_size % config.num_attention_heads != 0) {
      fields.Reject(heads, "does not divide hidden_size " + std::to_string(config.hidden_size));
    }
    config.head_dim = config.hidden_size / config.num_attention_heads;
    if (config.head_dim > kMaxHeadDim) {
      fields.Reject(hidden, "divided by " + std::string(heads) + " must be at most " + std::to_string(kMaxHeadDim));
    }
  }
  config.max_position_embeddings =
      fields.RequiredInt(NameOf(fields, {"max_position_embeddings", "n_positions"}), 1, kMaxSize);
}

void AppendUnique(const std::vector<int32_t>& from, std::vector<int32_t>& to) {
  for (int32_t id : from) {
    if (std::find(to.begin(), to.end(), id) == to.end()) to.push_back(id);
  }
}

// Reads the quantization from config.json or hf_quant_config.json. The error says which quantization of the model can
// be read.
QuantizationConfig ReadQuantizationOrSuggest(const ConfigFields& fields, const std::string& directory) {
  try {
    const QuantizationConfig config = ReadQuantization(fields);
    return config.method == QuantizationMethod::kNone ? ReadHfQuantConfig(directory) : config;
  } catch (const ModelError& error) {
    throw ModelError(error.what(),
                     "nearest that runs: the unquantized checkpoint with -q int4 or -q int8, or a GGUF file of it "
                     "(Q4_K_M, Q8_0)");
  }
}

// Returns the text_config of a multimodal config with the shared fields added from the outer config. Those that
// describe the whole model are taken from the outer config even if text_config has them.
nlohmann::json TextConfig(const nlohmann::json& outer) {
  nlohmann::json text = outer["text_config"];
  for (const char* name : {"architectures", "dtype", "torch_dtype", "tie_word_embeddings", "bos_token_id",
                           "eos_token_id", "quantization_config"}) {
    const bool is_of_whole =
        std::string_view(name) == "architectures" || std::string_view(name) == "tie_word_embeddings";
    const bool needed = is_of_whole || !text.contains(name);
    if (needed && outer.contains(name)) text[name] = outer[name];
  }
  return text;
}

}  // namespace

ModelConfig LoadModelConfig(const std::string& directory, const ArchitectureCheck& check_architecture) {
  std::string what = "config.json " + Escape(directory);
  nlohmann::json object = ParseJson(ReadTextFile(directory + "/config.json", kMaxConfigBytes, what), what);
  const bool nested = object.is_object() && object.contains("text_config") && object["text_config"].is_object();
  if (nested) object = TextConfig(object);
  ConfigFields fields(object, what, nested ? "text_config." : "");

  ModelConfig config;
  config.model = directory;
  config.directory = directory;
  config.architecture = ReadArchitecture(fields);
  if (check_architecture) check_architecture(config);
  config.model_type = fields.String("model_type").value_or("");
  if (config.model_type.empty()) fields.Fail("model_type", "missing");
  // Ling 2.0 has the model_type of the first Ling.
  if (config.architecture == "BailingMoeV2ForCausalLM") config.model_type = "bailing_moe_v2";
  config.quantization = ReadQuantizationOrSuggest(fields, directory);
  AddStandardFieldNames(config.model_type, object);
  AddModelTypeDefaults(config.model_type, object);
  if (nested) {
    AddTextSizeDefaults(config.model_type, object);
    config.weight_prefix = "language_model.";
  }
  ReadSizes(fields, config);
  const char* act = NameOf(fields, {"hidden_act", "activation_function", "activation"});
  config.hidden_act = fields.String(act).value_or(config.hidden_act);
  const char* eps = config.model_type == "starcoder2"                                    ? "norm_epsilon"
                    : config.model_type == "mamba2" || config.model_type == "nemotron_h" ? "layer_norm_epsilon"
                    : config.model_type == "nemotron" || config.model_type.starts_with("lfm2")
                        ? "norm_eps"
                        : NameOf(fields, {"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps"});
  config.rms_norm_eps = fields.PositiveDouble(eps, 1.0).value_or(config.rms_norm_eps);
  ReadRopeConfig(fields, config);
  // The rotary embedding rotates pairs of dimensions.
  if (config.head_dim % 2 != 0 && config.kv_lora_rank == 0 && config.model_type != "gpt2" &&
      config.model_type != "opt") {
    fields.Fail("head_dim", "not even (" + std::to_string(config.head_dim) + ")");
  }
  config.max_model_len = DerivedMaxModelLen(config);
  config.tie_word_embeddings = fields.Bool("tie_word_embeddings").value_or(false);
  config.attention_bias = fields.Bool("attention_bias").value_or(false);
  config.mlp_bias = fields.Bool("mlp_bias").value_or(false);
  config.checkpoint_dtype = ReadDType(fields);
  config.dtype = config.checkpoint_dtype;
  ReadArchitectureConfig(fields, config);
  ReadEncoder(fields, config);
  ReadLayerConfigs(fields, config);
  ReadEncoderLayers(fields, config);
  ReadHead(fields, config);

  std::vector<int32_t> bos = fields.TokenIds("bos_token_id", config.vocab_size - 1);
  if (!bos.empty()) config.bos_token_id = bos[0];
  AppendUnique(fields.TokenIds("eos_token_id", config.vocab_size - 1), config.eos_token_ids);
  AppendUnique(LoadGenerationConfig(directory).eos_token_ids, config.eos_token_ids);
  for (int32_t id : config.eos_token_ids) {
    if (id >= config.vocab_size) {
      throw ModelError("generation_config.json " + Escape(directory) + ": eos_token_id: outside 0 to " +
                       std::to_string(config.vocab_size - 1) + " (" + std::to_string(id) + ")");
    }
  }
  return config;
}

GenerationConfig LoadGenerationConfig(const std::string& directory) {
  GenerationConfig config;
  std::string path = directory + "/generation_config.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return config;
  std::string what = "generation_config.json " + Escape(directory);
  nlohmann::json object = ParseJson(ReadTextFile(path, kMaxConfigBytes, what), what);
  ConfigFields fields(object, what);
  config.do_sample = fields.Bool("do_sample");
  // No range is wider than that of SamplingParams, so that an error about a bad default names this file and not the
  // request. A temperature of 0 is allowed and has the same effect as do_sample false.
  config.temperature = fields.Double("temperature", 0.0, 2.0);
  config.top_p = fields.PositiveDouble("top_p", 1.0);
  config.top_k = fields.Int("top_k", -1, std::numeric_limits<int32_t>::max());
  config.min_p = fields.Double("min_p", 0.0, 1.0);
  config.repetition_penalty = fields.PositiveDouble("repetition_penalty", std::numeric_limits<double>::max());
  config.max_new_tokens = fields.Int("max_new_tokens", 1, std::numeric_limits<int32_t>::max());
  config.eos_token_ids = fields.TokenIds("eos_token_id", kMaxTokenId);
  return config;
}

}  // namespace vllm
