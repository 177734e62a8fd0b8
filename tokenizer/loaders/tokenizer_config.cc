#include "tokenizer/loaders/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "tokenizer/formats/json_fields.h"
#include "tokenizer/formats/python_json.h"
#include "tokenizer/formats/regular_file.h"
#include "tokenizer/models/vocabulary.h"
#include "tokenizer/tokenizer_parts.h"

namespace vllm::tokenizer {
namespace {

nlohmann::json ReadObject(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return nlohmann::json::object();
  nlohmann::json json =
      nlohmann::json::parse(ReplacePythonNumbers(ReadTokenizerFile(path)), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw TokenizerError("reading " + QuoteForError(path) + ": not a JSON object");
  return json;
}

std::optional<bool> BoolSetting(const nlohmann::json& json, const char* key) {
  if (!json.contains(key) || json[key].is_null()) return std::nullopt;
  return BoolField(json, key, "tokenizer_config.json");
}

int32_t IdFrom(const std::string& text) {
  int32_t id = -1;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), id);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || !(id >= 0 && id <= Vocabulary::kMaxId)) {
    throw TokenizerError("reading added_tokens_decoder: " + QuoteForError(text) + " is not an id in 0.." +
                         std::to_string(Vocabulary::kMaxId));
  }
  return id;
}

}  // namespace

TokenizerConfig ReadTokenizerConfig(const std::string& tokenizer_config_path, const std::string& added_tokens_path) {
  TokenizerConfig settings;
  const nlohmann::json config = ReadObject(tokenizer_config_path);
  settings.bos_token = TokenField(config, "bos_token");
  settings.eos_token = TokenField(config, "eos_token");
  settings.unk_token = TokenField(config, "unk_token");
  settings.pad_token = TokenField(config, "pad_token");
  settings.add_bos_token = BoolSetting(config, "add_bos_token");
  settings.add_eos_token = BoolSetting(config, "add_eos_token");
  settings.add_prefix_space = BoolSetting(config, "add_prefix_space").value_or(false);
  settings.tokenizer_class = TokenField(config, "tokenizer_class").value_or("");
  if (config.contains("added_tokens_decoder") && config["added_tokens_decoder"].is_object()) {
    for (const auto& item : config["added_tokens_decoder"].items()) {
      AddedToken token = ReadAddedToken(item.value());
      token.id = IdFrom(item.key());
      settings.added_tokens.push_back(std::move(token));
    }
  }
  const nlohmann::json added = ReadObject(added_tokens_path);
  for (const auto& item : added.items()) {
    const auto same = [&item](const AddedToken& token) { return token.content == item.key(); };
    if (std::any_of(settings.added_tokens.begin(), settings.added_tokens.end(), same)) continue;
    AddedToken token;
    token.content = item.key();
    token.normalized = false;
    token.id =
        static_cast<int32_t>(IntegerField(added, item.key().c_str(), "added_tokens.json", Vocabulary::kMaxId + 1));
    settings.added_tokens.push_back(std::move(token));
  }
  std::stable_sort(settings.added_tokens.begin(), settings.added_tokens.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return settings;
}

AddedToken ReadAddedToken(const nlohmann::json& json) {
  AddedToken token;
  token.content = StringField(json, "content", "an added token");
  const std::string where = "the added token " + QuoteForError(token.content);
  token.single_word = BoolField(json, "single_word", where, false);
  token.lstrip = BoolField(json, "lstrip", where, false);
  token.rstrip = BoolField(json, "rstrip", where, false);
  token.special = BoolField(json, "special", where, false);
  token.normalized = BoolField(json, "normalized", where, !token.special);
  return token;
}

std::string ReadTokenizerFile(const std::string& path) {
  std::string bytes;
  const RegularFile file = ReadRegularFile(path, kMaxTokenizerFileBytes, bytes);
  if (!file.ok()) throw TokenizerError("reading " + QuoteForError(path) + ": " + file.error);
  return bytes;
}

}  // namespace vllm::tokenizer
