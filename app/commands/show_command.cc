#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/engine_options.h"
#include "app/commands/commands.h"
#include "app/installed/weight_summary.h"
#include "app/model/model_files.h"
#include "app/model/sampling_defaults.h"
#include "app/model/thinking_mode.h"
#include "app/model/tokenizer_kind.h"
#include "app/model/tools_setting.h"
#include "app/output/json_text.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/model_loader/checkpoint/open_weights.h"
#include "engine/models/nearest_architecture.h"
#include "engine/worker/check_weights.h"
#include "kernels/threading/cpu_topology.h"
#include "kernels/threading/thread_pool.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

std::vector<SamplingValue> SamplingOf(const Settings& settings, const ModelLocation& location) {
  return MakeSamplingDefaults(settings, ReadGenerationConfig(location)).values;
}

struct Failure {
  std::string what;
  std::string hint;
};

// The errors for which `run` would reject the model, at most one each for the weights, the tokenizer and the chat
// template. Only the first is printed to standard error.
using Failures = std::vector<Failure>;

void AddWeights(const ModelLocation& location, const ModelConfig& model, Json& json, Failures& failures) {
  try {
    VllmConfig config;
    config.model = model;
    config.model.dtype = model.checkpoint_dtype;
    CheckWeights(config, *OpenWeights(config));
    const WeightSummary summary = SummarizeWeights(location, model);
    json["parameters"] = summary.parameters;
    json["quantization"] = summary.quantization;
    json["weight_bytes"] = summary.bytes;
    json["tensors"] = summary.num_tensors;
    for (const auto& [type, count] : summary.tensors_of_type) json["tensor_types"][type] = count;
  } catch (const ModelError& error) {
    json["parameters"] = nullptr;
    json["weight_bytes"] = nullptr;
    json["weights_error"] = error.what();
    failures.push_back({error.what(), error.hint()});
  }
}

void AddTokenizerError(const std::string& why, Json& json, Failures& failures) {
  json["tokenizer"] = nullptr;
  json["tokenizer_error"] = why;
  failures.push_back({why, ""});
}

// Says what runs instead of a model with `failures`.
std::string Nearest(const ModelConfig& model, const Failures& failures) {
  const std::string& own = failures.front().hint;
  std::string hint = own.starts_with(kNearestPrefix) ? own : NearestHint(model.architecture);
  return hint.substr(kNearestPrefix.size());
}

std::string TypesText(const Json& types) {
  std::string text;
  for (const auto& [type, count] : types.items()) text += (text.empty() ? "" : ", ") + type + " " + count.dump();
  return text;
}

// Describes how the model turns texts into vectors or scores, if it is made for that.
void AddPooling(const ModelConfig& model, Json& json) {
  const PoolerConfig& pooler = model.pooler;
  if (model.can_generate && !pooler.is_from_files) return;
  json["generates_text"] = model.can_generate;
  std::string types;
  for (const PoolingType type : pooler.types) types += (types.empty() ? "" : "+") + std::string(ToString(type));
  json["pooling"] = types;
  if (pooler.classifier) {
    json["num_labels"] = pooler.classifier->num_labels;
    return;
  }
  json["vector_size"] = pooler.truncate_dim > 0 ? pooler.truncate_dim : pooler.VectorSize(model.hidden_size);
  json["normalized"] = pooler.normalize;
  Json prompts = Json::array();
  for (const auto& [name, text] : pooler.prompts) prompts.push_back(name);
  json["prompt_names"] = std::move(prompts);
}

// Adds the formats of thoughts and of tool calls that a chat recognizes. A template without tools has no calls.
void AddFormats(const Settings& settings, const PromptRenderer* renderer,
                const std::shared_ptr<const tokenizer::Tokenizer>& tokenizer, Json& json) {
  if (renderer == nullptr || tokenizer == nullptr) return;
  const std::shared_ptr<const ReasoningFormat> thinking = ChooseReasoningFormat(settings, renderer, tokenizer);
  json["thinking"] = thinking == nullptr ? Json() : Json(thinking->family->name);
  const bool shows_tools = renderer->UsesVariable("tools");
  const ToolCallFormat* calls = shows_tools ? ModelToolCallFormat(settings, *renderer, *tokenizer) : nullptr;
  json["tool_calls"] = calls == nullptr ? Json() : Json(calls->name);
}

Json Describe(const Settings& settings, const ModelLocation& location, Failures& failures) {
  const ModelConfig model = ReadModelConfig(location);
  Json json;
  json["name"] = location.name;
  json["directory"] = location.directory;
  if (location.is_gguf()) json["file"] = location.gguf_file;
  json["origin"] = location.origin;
  json["architecture"] = model.architecture;
  json["model_type"] = model.model_type;
  json["format"] = location.is_gguf() ? "gguf" : "safetensors";
  AddWeights(location, model, json, failures);
  json["dtype"] = ToString(model.checkpoint_dtype);
  json["hidden_size"] = model.hidden_size;
  json["intermediate_size"] = model.intermediate_size;
  json["num_hidden_layers"] = model.num_hidden_layers;
  json["num_attention_heads"] = model.num_attention_heads;
  json["num_key_value_heads"] = model.num_key_value_heads;
  json["head_dim"] = model.head_dim;
  if (model.num_experts > 0) {
    json["num_experts"] = model.num_experts;
    json["num_experts_per_tok"] = model.num_experts_per_tok;
  }
  json["vocab_size"] = model.vocab_size;
  json["context"] = model.max_position_embeddings;
  json["sliding_window"] = model.sliding_window ? Json(*model.sliding_window) : Json();
  json["tie_word_embeddings"] = model.tie_word_embeddings;
  const kernels::KVDType cache_dtype = CacheDType(settings).value_or(DefaultKVDType(model));
  int64_t cache_bytes = 0, state_bytes = 0;
  for (const LayerConfig& layer : model.layers) {
    const kernels::KVCacheLayout layout{.dtype = cache_dtype,
                                        .block_size = CacheConfig().block_size,
                                        .num_kv_heads = model.NumKVHeads(layer),
                                        .head_dim = model.CachedHeadDim(layer),
                                        .value_dim = model.CachedValueDim()};
    state_bytes += model.RecurrentStateFloats(layer) * static_cast<int64_t>(sizeof(float));
    if (!layer.HasAttention() || model.is_encoder) continue;
    if (layer.kv_source_layer < 0) cache_bytes += layout.BlockBytes() / layout.block_size;
  }
  json["kv_cache_dtype"] = ToString(cache_dtype);
  json["kv_cache_bytes_per_token"] = cache_bytes;
  if (state_bytes > 0) json["recurrent_state_bytes"] = state_bytes;  // of each request
  AddPooling(model, json);
  json["eos_token_ids"] = model.eos_token_ids;
  json["files_bytes"] = ModelBytes(location);
  const kernels::CpuTopology cpus(kernels::UsableCpus());
  json["cores"] = cpus.num_cores();
  json["numa_nodes"] = cpus.num_nodes();
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  try {
    const bool has_tokenizer = ModelHasTokenizer(location);
    json["tokenizer"] = has_tokenizer ? Json(TokenizerKind(location)) : Json();
    // TokenizerKind may read only the beginning of the files. `run` reads them completely, so load the tokenizer to
    // find errors in the rest.
    if (has_tokenizer) tokenizer = LoadModelTokenizer(location);
  } catch (const ModelError& error) {
    AddTokenizerError(error.what(), json, failures);
  } catch (const tokenizer::TokenizerError& error) {
    AddTokenizerError(error.what(), json, failures);
  }
  try {
    const std::unique_ptr<PromptRenderer> renderer = LoadPromptRenderer(settings, location);
    json["chat_template"] = renderer == nullptr ? Json() : Json(renderer->source().origin);
    AddFormats(settings, renderer.get(), tokenizer, json);
  } catch (const tokenizer::ChatTemplateError& error) {
    json["chat_template"] = nullptr;
    json["chat_template_error"] = error.what();
    failures.push_back({error.what(), ""});
  }
  if (!failures.empty()) json["nearest_that_runs"] = Nearest(model, failures);
  json["sampling"] = SamplingJson(SamplingOf(settings, location));
  return json;
}

std::string ValueText(const std::string& name, const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return value.get<std::string>();
  if (name == "tensor_types") return TypesText(value);
  if (name == "parameters") return CountText(value.get<int64_t>()) + " (" + value.dump() + ")";
  if (name == "weight_bytes" || name == "files_bytes" || name == "kv_cache_bytes_per_token" ||
      name == "recurrent_state_bytes") {
    return SizeText(value.get<int64_t>());
  }
  return value.dump();
}

// Prints the first failure, if any. Returns the exit status.
int Status(const Failures& failures) {
  if (failures.empty()) return 0;
  PrintError(failures.front().what, failures.front().hint);
  return 3;
}

}  // namespace

int ShowCommand(const Settings& settings) {
  if (settings.arguments.size() > 1) throw ConfigError("show: expects at most one MODEL");
  Settings named = settings;
  if (!settings.arguments.empty()) {
    named.Set(*FindFlag("model"), {settings.arguments[0]}, SettingSource::kCommandLine, "MODEL");
  }
  const ModelLocation location = LocateModel(named);
  Failures failures;
  const Json json = Describe(settings, location, failures);
  if (settings.Switch("json")) {
    StandardOutput().WriteLine(SafeJson(DumpJson(json)));
    return Status(failures);
  }
  std::string out;
  for (const auto& [name, value] : json.items()) {
    std::string label = name;
    std::replace(label.begin(), label.end(), '_', ' ');
    label.append(label.size() < 26 ? 26 - label.size() : 1, ' ');
    out += label;
    out += SafeLine(name == "sampling" ? SamplingText(SamplingOf(settings, location)) : ValueText(name, value)).view();
    out += '\n';
  }
  StandardOutput().Write(SafeText(out));
  return Status(failures);
}

}  // namespace vllm::app
