#include "app/presets/preset_store.h"

#include <algorithm>

#include "app/cli/parse_value.h"
#include "app/cli/xdg.h"
#include "app/presets/shipped_presets.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxFileBytes = size_t{256} << 10;
constexpr size_t kMaxListed = 1000;
constexpr std::string_view kSuffix = ".toml";

}  // namespace

bool IsPresetName(std::string_view name) {
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || name.size() > kMaxNameBytes || !is_alphanumeric(name.front()) || name == "off") return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

void CheckPresetName(const std::string& name) {
  if (IsPresetName(name)) return;
  throw ConfigError(
      "preset " + Escape(name, kMaxNameBytes) +
          ": a name has 1 to 64 letters, digits, '.', '_' and '-', a letter or digit first, and is not off",
      "vllmcli presets list shows the presets");
}

std::string PresetDirectory() {
  const std::string home = ConfigHome();
  return home.empty() ? "" : home + "/presets";
}

std::string PresetPath(const std::string& name) {
  const std::string directory = PresetDirectory();
  if (directory.empty()) throw ConfigError("presets: neither XDG_CONFIG_HOME nor HOME is an absolute path");
  return directory + "/" + name + std::string(kSuffix);
}

std::optional<std::string> ReadUserPreset(const std::string& name) {
  if (PresetDirectory().empty()) return std::nullopt;
  const std::string path = PresetPath(name);
  std::string text;
  const tokenizer::RegularFile file = tokenizer::ReadRegularFile(path, kMaxFileBytes, text);
  if (file.is_missing()) return std::nullopt;
  const std::string message = "preset file " + Escape(path) + ": " + file.error;
  if (file.is_out_of_resources()) throw ResourceError(message);
  if (!file.ok()) throw ConfigError(message);
  return text;
}

std::optional<std::string> ShippedPresetText(std::string_view name) {
  for (const ShippedPreset& preset : ShippedPresets()) {
    if (preset.name == name) return std::string(preset.text);
  }
  return std::nullopt;
}

std::string SummaryText(const PresetSummary& summary) {
  if (!summary.error.empty()) return "invalid: " + summary.error;
  std::string variables;
  for (const std::string& name : summary.variables) variables += (variables.empty() ? "" : ", ") + name;
  if (variables.empty()) return summary.description;
  return summary.description + (summary.description.empty() ? "[" : " [") + variables + "]";
}

std::vector<PresetSummary> ListPresets() {
  std::vector<PresetSummary> summaries;
  const auto add = [&](const std::string& name, bool is_users) {
    PresetSummary summary;
    summary.name = name;
    summary.is_users = is_users;
    summary.hides_shipped = is_users && ShippedPresetText(name).has_value();
    try {
      const Preset preset = LoadPreset(name);
      summary.description = preset.description;
      summary.variables = preset.Variables();
      std::replace(summary.description.begin(), summary.description.end(), '\n', ' ');
    } catch (const ConfigError& error) {
      summary.error = error.what();
    } catch (const ResourceError& error) {
      summary.error = error.what();
    }
    summaries.push_back(std::move(summary));
  };
  const std::string directory = PresetDirectory();
  for (std::string name : directory.empty() ? std::vector<std::string>() : tokenizer::NamesInDirectory(directory)) {
    if (!name.ends_with(kSuffix) || summaries.size() == kMaxListed) continue;
    name.resize(name.size() - kSuffix.size());
    if (IsPresetName(name)) add(name, true);
  }
  const size_t num_users = summaries.size();
  for (const ShippedPreset& preset : ShippedPresets()) {
    const auto end = summaries.begin() + static_cast<std::ptrdiff_t>(num_users);
    const bool is_hidden = std::any_of(summaries.begin(), end, [&](const auto& s) { return s.name == preset.name; });
    if (!is_hidden) add(std::string(preset.name), false);
  }
  std::sort(summaries.begin(), summaries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return summaries;
}

Preset LoadPreset(const std::string& name) {
  CheckPresetName(name);
  if (const std::optional<std::string> text = ReadUserPreset(name)) {
    const std::string path = PresetPath(name);
    Preset preset = ParsePreset(name, *text, path);
    preset.path = path;
    return preset;
  }
  if (const std::optional<std::string> text = ShippedPresetText(name)) return ParsePreset(name, *text, name + ".toml");
  std::vector<std::string> names;
  for (const PresetSummary& summary : ListPresets()) names.push_back(summary.name);
  const std::string near = NearestName(name, names);
  throw ConfigError("preset " + name + ": there is none" + (near.empty() ? "" : "; did you mean " + near + "?"),
                    "vllmcli presets list shows the presets; vllmcli presets edit " + name + " makes this one");
}

}  // namespace vllm::app
