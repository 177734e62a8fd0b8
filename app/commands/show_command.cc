#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/size_text.h"
#include "app/config/engine_options.h"
#include "app/generation/model_files.h"
#include "app/generation/result_json.h"
#include "app/model_hub/model_hub.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/model_loader/weights.h"

namespace vllm {
namespace {

using Json = nlohmann::ordered_json;

// Parameters by the shapes a Llama-like decoder has; exact where the headers of the weights can be read.
int64_t CountParameters(const ModelConfig& model) {
  const int64_t q = model.num_attention_heads * model.head_dim;
  const int64_t kv = model.num_key_value_heads * model.head_dim;
  const int64_t attention = model.hidden_size * (2 * q + 2 * kv);
  const int64_t mlp = 3 * model.hidden_size * model.intermediate_size;
  const int64_t layer = attention + mlp + 2 * model.hidden_size;
  const int64_t embedding = model.vocab_size * model.hidden_size;
  return model.num_hidden_layers * layer + embedding * (model.tie_word_embeddings ? 1 : 2) + model.hidden_size;
}

std::string SamplingText(const SamplingParams& params) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "temperature %g, top-p %g, top-k %lld, min-p %g, repetition-penalty %g",
                params.temperature, params.top_p, static_cast<long long>(params.top_k), params.min_p,
                params.repetition_penalty);
  return text.data();
}

Json Describe(const Settings& settings, const ModelLocation& location) {
  const ModelConfig model = LoadModelConfig(location);
  Json json;
  json["name"] = location.name;
  json["folder"] = location.folder;
  json["origin"] = location.origin;
  json["architecture"] = model.architecture;
  json["model_type"] = model.model_type;
  try {
    VllmConfig config;
    config.model = model;
    const std::unique_ptr<WeightSource> weights = OpenWeights(config);
    const int64_t bytes = weights->TotalBytes();
    json["parameters"] = bytes / static_cast<int64_t>(SizeOf(model.checkpoint_dtype));
    json["weight_bytes"] = bytes;
    json["tensors"] = weights->Names().size();
  } catch (const ModelError& error) {
    json["parameters"] = CountParameters(model);
    json["weight_bytes"] = nullptr;
    json["weights_error"] = error.what();
  }
  json["dtype"] = ToString(model.checkpoint_dtype);
  json["hidden_size"] = model.hidden_size;
  json["intermediate_size"] = model.intermediate_size;
  json["num_hidden_layers"] = model.num_hidden_layers;
  json["num_attention_heads"] = model.num_attention_heads;
  json["num_key_value_heads"] = model.num_key_value_heads;
  json["head_dim"] = model.head_dim;
  json["vocab_size"] = model.vocab_size;
  json["context"] = model.max_position_embeddings;
  json["sliding_window"] = model.sliding_window ? Json(*model.sliding_window) : Json();
  json["tie_word_embeddings"] = model.tie_word_embeddings;
  json["kv_cache_bytes_per_token"] = 2 * model.num_hidden_layers * model.num_key_value_heads * model.head_dim *
                                     static_cast<int64_t>(SizeOf(model.checkpoint_dtype));
  json["eos_token_ids"] = model.eos_token_ids;
  json["files_bytes"] = ModelBytes(location);
  try {
    json["tokenizer"] = HasTokenizer(location) ? Json(LoadTokenizer(location)->Kind()) : Json();
  } catch (const TokenizerError& error) {
    json["tokenizer"] = nullptr;
    json["tokenizer_error"] = error.what();
  }
  try {
    const std::unique_ptr<PromptRenderer> renderer = LoadPromptRenderer(settings, location);
    json["chat_template"] = renderer == nullptr ? Json() : Json(renderer->source().origin);
  } catch (const ChatTemplateError& error) {
    json["chat_template"] = nullptr;
    json["chat_template_error"] = error.what();
  }
  json["sampling"] = SamplingText(MakeSamplingParams(settings, LoadGenerationConfig(location)));
  return json;
}

std::string ValueText(const std::string& name, const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return value.get<std::string>();
  if (name == "parameters") return CountText(value.get<int64_t>()) + " (" + value.dump() + ")";
  if (name == "weight_bytes" || name == "files_bytes" || name == "kv_cache_bytes_per_token") {
    return SizeText(value.get<int64_t>());
  }
  return value.dump();
}

}  // namespace

int ShowCommand(const Settings& settings) {
  if (settings.arguments.size() > 1) throw ConfigError("show: needs at most one MODEL");
  const ModelLocation location = settings.arguments.empty()
                                     ? LocateModel(settings)
                                     : FindModel(settings.arguments[0], settings.Text("load-format").value_or("auto"));
  const Json json = Describe(settings, location);
  if (settings.Switch("json")) {
    StandardOutput().WriteLine(SafeJson(DumpJson(json)));
    return 0;
  }
  std::string out;
  for (const auto& [name, value] : json.items()) {
    std::string label = name;
    std::replace(label.begin(), label.end(), '_', ' ');
    label.append(label.size() < 26 ? 26 - label.size() : 1, ' ');
    out += label + ValueText(name, value) + "\n";
  }
  StandardOutput().Write(SafeText(out));
  return 0;
}

}  // namespace vllm
