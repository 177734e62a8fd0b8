#include "app/installed/model_aliases.h"

#include <algorithm>

#include "app/cli/edit_file.h"
#include "app/cli/toml/toml_editor.h"
#include "app/cli/toml/toml_reader.h"
#include "app/cli/xdg.h"
#include "app/installed/model_location.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 10;
constexpr size_t kMaxNameBytes = 64;

std::string RequiredPath() {
  std::string path = ModelAliasesPath();
  if (path.empty()) throw ConfigError("models alias: neither XDG_CONFIG_HOME nor HOME is an absolute path");
  return path;
}

}  // namespace

bool IsModelAliasName(std::string_view name) {
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || name.size() > kMaxNameBytes || !is_alphanumeric(name.front())) return false;
  if (name == kShippedModelName || name.ends_with(".gguf")) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

std::string ModelAliasesPath() {
  const std::string home = ConfigHome();
  return home.empty() ? "" : home + "/model-aliases.toml";
}

std::vector<ModelAlias> ReadModelAliases() {
  std::vector<ModelAlias> aliases;
  const std::string path = ModelAliasesPath();
  if (path.empty()) return aliases;
  std::string text;
  const tokenizer::RegularFile file = tokenizer::ReadRegularFile(path, kMaxFileBytes, text);
  if (file.is_missing()) return aliases;
  const std::string message = "aliases " + Escape(path) + ": " + file.error;
  if (file.is_out_of_resources()) throw ResourceError(message);
  if (!file.ok()) throw ConfigError(message);
  const TomlDocument document = ReadToml(text, path);
  for (const TomlEntry& entry : document.entries) {
    const std::string where =
        Escape(path) + ":" + entry.position.Text() + ": " + Escape(entry.key, kMaxNameBytes) + ": ";
    if (!entry.table.empty()) throw ConfigError(where + "an alias cannot be in a table");
    if (!IsModelAliasName(entry.key)) throw ConfigError(where + "cannot be the name of an alias");
    if (entry.is_array || entry.values[0].empty()) throw ConfigError(where + "must be the name of a model");
    aliases.push_back({entry.key, entry.values[0]});
  }
  std::sort(aliases.begin(), aliases.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return aliases;
}

std::optional<std::string> FindModelAlias(const std::string& name) {
  if (!IsModelAliasName(name)) return std::nullopt;
  for (ModelAlias& alias : ReadModelAliases()) {
    if (alias.name == name) return std::move(alias.target);
  }
  return std::nullopt;
}

void SetModelAlias(const std::string& name, const std::string& target) {
  const std::string path = RequiredPath();
  EditFile(path, kMaxFileBytes, [&](const std::string& text) { return SetTomlString(text, name, target, path); });
}

bool RemoveModelAlias(const std::string& name) {
  const std::string path = RequiredPath();
  bool is_removed = false;
  EditFile(path, kMaxFileBytes, [&](const std::string& text) {
    std::string edited = RemoveTomlKey(text, name, path);
    is_removed = edited != text;
    return edited;
  });
  return is_removed;
}

}  // namespace vllm::app
