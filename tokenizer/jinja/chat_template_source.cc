#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tokenizer/formats/json_fields.h"
#include "tokenizer/formats/python_json.h"
#include "tokenizer/formats/regular_file.h"
#include "tokenizer/jinja/builtins/globals.h"
#include "tokenizer/jinja/chat_template.h"
#include "tokenizer/jinja/syntax/lexer.h"

namespace vllm::tokenizer {
namespace {

using nlohmann::json;

// tokenizer_config.json lists every added token, so it can be large, but no known file comes near 64 MiB.
constexpr size_t kMaxConfigBytes = size_t{64} << 20;

[[noreturn]] void Fail(const std::filesystem::path& path, const std::string& why) {
  throw ChatTemplateError("cannot read the chat template from " + jinja::EscapeForError(path.string()) + ": " + why);
}

std::optional<std::string> ReadFile(const std::filesystem::path& path, size_t max_bytes) {
  std::string text;
  const RegularFile file = ReadRegularFile(path.string(), max_bytes, text);
  if (file.is_missing()) return std::nullopt;
  if (!file.ok()) Fail(path, file.error);
  return text;
}

json ReadObject(const std::filesystem::path& path) {
  const std::optional<std::string> text = ReadFile(path, kMaxConfigBytes);
  if (!text) return json::object();
  json object = json::parse(ReplacePythonNumbers(*text), nullptr, false);
  if (object.is_discarded()) Fail(path, "not valid JSON");
  if (!object.is_object()) Fail(path, "not a JSON object");
  return object;
}

// Sets the templates and the origin of `source`. Returns false if there is no default template.
bool TakeTemplates(const json& config, const std::filesystem::path& path, ChatTemplateSource& source) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return false;
  source.origin = path.string();
  if (found->is_string()) {
    source.text = found->get<std::string>();
    return true;
  }
  bool has_default = false;
  if (!found->is_array()) Fail(path, "chat_template is neither a string nor a list");
  for (const json& entry : *found) {
    if (!entry.is_object()) Fail(path, "chat_template has an entry that is not an object");
    const auto name = entry.find("name");
    const auto text = entry.find("template");
    if (name == entry.end() || !name->is_string() || text == entry.end() || !text->is_string()) {
      Fail(path, "chat_template has an entry in which name or template is missing or not a string");
    }
    const std::string& kind = name->get_ref<const std::string&>();
    if (kind == "default") {
      source.text = text->get<std::string>();
      has_default = true;
    } else if (kind == "tool_use") {
      source.tool_use_text = text->get<std::string>();
    }
  }
  return has_default;
}

}  // namespace

std::optional<ChatTemplateSource> FindChatTemplate(const std::string& model_directory) {
  const std::filesystem::path directory(model_directory);
  const std::filesystem::path config_path = directory / "tokenizer_config.json";
  const std::filesystem::path template_path = directory / "chat_template.jinja";
  // Processors of multimodal models store their chat template in this file.
  const std::filesystem::path processor_path = directory / "chat_template.json";
  const json config = ReadObject(config_path);
  ChatTemplateSource source;
  if (std::optional<std::string> text = ReadFile(template_path, jinja::kMaxSourceBytes)) {
    source.text = *std::move(text);
    source.origin = template_path.string();
    source.tool_use_text =
        ReadFile(directory / "additional_chat_templates" / "tool_use.jinja", jinja::kMaxSourceBytes).value_or("");
  } else if (!TakeTemplates(ReadObject(processor_path), processor_path, source) &&
             !TakeTemplates(config, config_path, source)) {
    return std::nullopt;
  }
  source.bos_token = TokenField(config, "bos_token").value_or("");
  source.eos_token = TokenField(config, "eos_token").value_or("");
  if (source.bos_token.empty() || source.eos_token.empty()) {
    const json map = ReadObject(directory / "special_tokens_map.json");
    if (source.bos_token.empty()) source.bos_token = TokenField(map, "bos_token").value_or("");
    if (source.eos_token.empty()) source.eos_token = TokenField(map, "eos_token").value_or("");
  }
  return source;
}

}  // namespace vllm::tokenizer
