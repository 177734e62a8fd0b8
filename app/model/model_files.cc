#include "app/model/model_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/hub/model_reference.h"
#include "app/installed/find_model.h"
#include "app/installed/list_models.h"
#include "app/model/offer_download.h"
#include "app/model/thinking_mode.h"
#include "app/model/tools_setting.h"
#include "app/output/json_text.h"
#include "app/terminal/signals.h"
#include "app/tools/tool_loader.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/gguf/tokenizer.h"
#include "engine/model_loader/pooling/sentence_transformers.h"
#include "engine/models/nearest_architecture.h"
#include "engine/models/registry.h"
#include "tokenizer/formats/regular_file.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxTemplateBytes = 4 << 20;

// Returns false for commands that read only the other files of a model.
bool NeedsWeights(const Settings& settings) {
  const Command command = settings.command;
  return settings.Text("load-format") != "dummy" && command != Command::kTokenize && command != Command::kRender &&
         command != Command::kShow;
}

// Returns general.architecture, or "" if the file cannot be read that far.
std::string GgufArchitectureOf(const std::string& path) {
  try {
    return std::string(GgufFile(path).metadata().String("general.architecture").value_or(""));
  } catch (const ModelError&) {
    return "";
  }
}

}  // namespace

ModelLocation LocateModel(const Settings& settings) {
  const std::string revision = settings.Text("revision").value_or("");
  const auto find = [&] {
    return FindModel(settings.Text("model").value_or(""), settings.Text("load-format").value_or("auto"), revision);
  };
  try {
    ModelLocation location = find();
    if (NeedsWeights(settings) && location.origin == kHubCacheOrigin && !IsComplete(location)) {
      ModelReference reference = ParseModelReference(location.name).value_or(ModelReference{location.repo_id, "", ""});
      if (!revision.empty()) reference.revision = revision;
      throw MissingModelError("model " + location.name + ": its download is not complete", std::move(reference));
    }
    return location;
  } catch (const MissingModelError& error) {
    // In a chat, the terminal belongs to the line editor.
    if (settings.SourceOf("model") == SettingSource::kChat) throw;
    OfferDownload(error);
  }
  return find();
}

std::string LocateAdapter(const std::string& name) {
  try {
    return FindAdapter(name);
  } catch (const MissingModelError& error) {
    OfferDownload(error);
  }
  return FindAdapter(name);
}

ModelConfig ReadModelConfig(const ModelLocation& location) {
  std::string architecture;
  try {
    if (location.is_gguf()) return LoadGgufConfig(location.gguf_file);
    const auto check = [&architecture](const ModelConfig& config) {
      architecture = config.architecture;
      CheckArchitecture(config);
    };
    ModelConfig config = LoadModelConfig(location.directory, check);
    ReadSentenceTransformers(config);
    return config;
  } catch (const ModelError& error) {
    if (!error.hint().empty()) throw;
    if (location.is_gguf()) architecture = GgufArchitectureOf(location.gguf_file);
    if (architecture.empty()) throw;
    throw ModelError(error.what(), NearestHint(architecture));
  }
}

GenerationConfig ReadGenerationConfig(const ModelLocation& location) {
  return location.is_gguf() ? LoadGgufGenerationConfig(location.gguf_file) : LoadGenerationConfig(location.directory);
}

bool ModelHasTokenizer(const ModelLocation& location) {
  if (location.is_gguf()) return HasGgufTokenizer(GgufFile(location.gguf_file).metadata());
  return tokenizer::HasTokenizer(location.directory);
}

std::string TokenizerWarning(const ModelLocation& location) {
  if (!ModelHasTokenizer(location)) {
    return "model " + location.name + ": has no tokenizer, so prompts must be token ids and answers have no text";
  }
  if (location.is_gguf()) {
    const GgufFile file(location.gguf_file);
    const GgufMetadata& metadata = file.metadata();
    if (metadata.String("tokenizer.ggml.model").value_or("") != "gpt2" || metadata.String("tokenizer.ggml.pre"))
      return "";
    return "tokenizer of " + Escape(location.gguf_file) +
           ": tokenizer.ggml.pre is missing; using the default pre-tokenizer instead";
  }
  const std::string used = tokenizer::FallbackTokenizerFile(location.directory);
  if (used.empty()) return "";
  return "tokenizer of " + Escape(location.directory) + ": tokenizer.json is missing; using " + Escape(used) +
         " instead";
}

std::string RopeWarning(const ModelConfig& model) {
  const RopeScaling& scaling = model.rope_scaling;
  const int64_t original = scaling.original_max_position_embeddings;
  if (model.max_model_len <= original) return "";
  const std::string start = "model " + model.model + ": ";
  const std::string end = "; --max-model-len " + std::to_string(original) + " avoids the difference";
  switch (scaling.kind) {
    case RopeScaling::Kind::kDynamic:
      return start + "dynamic RoPE scaling changes the angles from position " + std::to_string(original) +
             " on, and those of all positions in transformers" + end;
    case RopeScaling::Kind::kLongRope:
      return start + "LongRoPE uses its long factors for every text, and transformers only for texts of more than " +
             std::to_string(original) + " tokens" + end;
    default:
      return "";
  }
}

std::shared_ptr<const tokenizer::Tokenizer> LoadModelTokenizer(const ModelLocation& location) {
  std::unique_ptr<tokenizer::Tokenizer> tokenizer = location.is_gguf() ? LoadGgufTokenizer(GgufFile(location.gguf_file))
                                                                       : tokenizer::LoadTokenizer(location.directory);
  tokenizer->SetStop(&InterruptWaits());
  return tokenizer;
}

std::string TemplateVariables(const Settings& settings) {
  nlohmann::ordered_json variables;
  for (const std::string& text : settings.Texts("template-var")) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw ConfigError("--template-var: must be NAME=VALUE (" + text + ")");
    const std::string value = text.substr(equals + 1);
    // Drops values nested more than 32 levels deep. Values typed on a command line have few levels.
    const auto shallow = [](int depth, nlohmann::json::parse_event_t, nlohmann::ordered_json&) { return depth <= 32; };
    const auto json = nlohmann::ordered_json::parse(value, shallow, false);
    variables[text.substr(0, equals)] = json.is_discarded() ? nlohmann::ordered_json(value) : json;
  }
  return variables.is_null() ? "" : DumpJson(variables);
}

std::unique_ptr<PromptRenderer> LoadPromptRenderer(const Settings& settings, const ModelLocation& location) {
  std::optional<tokenizer::ChatTemplateSource> source = location.is_gguf()
                                                            ? GgufChatTemplate(GgufFile(location.gguf_file).metadata())
                                                            : tokenizer::FindChatTemplate(location.directory);
  if (const auto path = settings.Text("chat-template")) {
    if (!source) source.emplace();
    source->text = ReadFileOrStdin(*path, kMaxTemplateBytes);
    source->tool_use_text.clear();
    source->origin = *path;
  }
  if (!source || source->text.empty()) return nullptr;
  auto renderer =
      std::make_unique<PromptRenderer>(std::move(*source), settings.Text("now"), TemplateVariables(settings));
  ApplyThinkSetting(settings, renderer.get());
  // Chats and runs load tools that can be run on their own (tool_use.h).
  const bool runs_tools = settings.command == Command::kChat || settings.command == Command::kRun;
  if (!runs_tools || !NamesTools(settings.Text("tools").value_or(""))) {
    renderer->SetTools(ReadTools(settings, *renderer));
  }
  // A batch reports this error per row.
  const bool is_conversation = settings.command == Command::kChat || settings.command == Command::kRun;
  if (is_conversation && !settings.Text("system").value_or("").empty() && !renderer->takes_system_message()) {
    const bool is_of_preset = settings.SourceOf("system") == SettingSource::kPreset;
    throw ConfigError((is_of_preset ? "preset: " : "--system: ") + std::string("the chat template (") +
                      renderer->source().origin + ") does not support a system message");
  }
  return renderer;
}

std::string ReadFileOrStdin(const std::string& path, size_t max_bytes) {
  std::string text;
  if (path != "-") {
    const tokenizer::RegularFile file = tokenizer::ReadRegularFile(path, max_bytes, text);
    const std::string message = "reading " + path + ": " + file.error;
    if (file.is_out_of_resources()) throw ResourceError(message);
    if (!file.ok()) throw ConfigError(message);
    return text;
  }
  std::string buffer(1 << 16, '\0');
  while (true) {
    const ssize_t num_read = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (num_read < 0 && errno == EINTR) {
      ThrowIfInterrupted();
      continue;
    }
    if (num_read < 0) throw ConfigError(std::string("reading standard input: ") + std::strerror(errno));
    if (num_read == 0) return text;
    text.append(buffer, 0, static_cast<size_t>(num_read));
    if (text.size() > max_bytes) {
      throw ConfigError("reading standard input: too long (limit " + std::to_string(max_bytes >> 20) + " MiB)");
    }
  }
}

}  // namespace vllm::app
