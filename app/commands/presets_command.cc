#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/xdg.h"
#include "app/commands/commands.h"
#include "app/editor/external_editor.h"
#include "app/model/sampling_defaults.h"
#include "app/output/json_text.h"
#include "app/output/list_text.h"
#include "app/presets/preset_prompt.h"
#include "app/presets/preset_store.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxDescription = 100;               // characters
constexpr size_t kMaxDraftBytes = size_t{256} << 10;  // as for a preset

constexpr std::string_view kNewPreset =
    R"(# A preset: see "vllmcli presets --help". Delete the lines that you do not need.
description = ""
# The system message begins a conversation. {NAME} is a variable; write {{ and }} for literal braces.
#system = "Answer in {language}."
# {input} is the text of the user or of a batch row.
prompt = """
{input}"""
# A model as for -m, and any sampling flag by its long name.
#model = "OWNER/NAME"
#temperature = 0.7
# Default values of variables. The others must be set with -p NAME=VALUE.
#[variables]
#language = "English"
)";

std::string OriginOf(bool is_users, bool hides_shipped) {
  if (!is_users) return "shipped";
  return hides_shipped ? "yours, hides the shipped one" : "yours";
}

int List(bool as_json) {
  const std::vector<PresetSummary> presets = ListPresets();
  if (as_json) {
    Json list = Json::array();
    for (const PresetSummary& preset : presets) {
      Json entry = {{"name", preset.name},
                    {"description", preset.description},
                    {"variables", preset.variables},
                    {"origin", preset.is_users ? "user" : "shipped"},
                    {"hides_shipped", preset.hides_shipped}};
      if (!preset.error.empty()) entry["error"] = preset.error;
      list.push_back(std::move(entry));
    }
    StandardOutput().WriteLine(SafeJson(DumpJson(list)));
    return 0;
  }
  for (const PresetSummary& preset : presets) {
    std::string line = preset.name;
    line.append(line.size() < 18 ? 18 - line.size() : 1, ' ');
    // The reason why a file is invalid is not cut.
    line += preset.error.empty() ? FirstLine(SummaryText(preset), kMaxDescription) : SummaryText(preset);
    StandardOutput().WriteLine(SafeLine(line + " (" + OriginOf(preset.is_users, preset.hides_shipped) + ")"));
  }
  return 0;
}

// Checks the ranges of the sampling settings, as far as they do not depend on a model. Throws ConfigError.
void CheckSampling(const Preset& preset) {
  for (const Command command : {Command::kChat, Command::kRun, Command::kBatch}) {
    Settings settings;
    settings.command = command;
    for (const Preset::Setting& setting : preset.settings) {
      if (setting.flag->belongs_to(command)) {
        settings.Set(*setting.flag, setting.values, SettingSource::kPreset, setting.where);
      }
    }
    SamplingParams params = MakeSamplingDefaults(settings, GenerationConfig()).params;
    try {
      params.Normalize(std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::max(), -1);
    } catch (const RequestError& error) {
      throw ConfigError("preset " + preset.name + ": " + error.what());
    }
  }
}

int Show(const std::string& name, bool as_json) {
  CheckPresetName(name);
  const std::optional<std::string> users = ReadUserPreset(name);
  const std::optional<std::string> shipped = ShippedPresetText(name);
  if (!users && !shipped) LoadPreset(name);  // throws
  if (!as_json) {
    // A comment, so that the output is a preset too.
    const std::string where = users ? PresetPath(name) : std::string("ships with vllmcli");
    StandardOutput().WriteLine(SafeLine("# " + where + " (" + OriginOf(users.has_value(), users && shipped) + ")"));
    std::string text = users ? *users : *shipped;
    if (!text.ends_with('\n')) text += '\n';
    StandardOutput().Write(SafeText(text));
    CheckSampling(LoadPreset(name));
    return 0;
  }
  const Preset preset = LoadPreset(name);
  CheckSampling(preset);
  Json variables = Json::object();
  for (const std::string& variable : preset.Variables()) variables[variable] = nullptr;
  for (const auto& [variable, value] : preset.defaults) variables[variable] = value;
  StandardOutput().WriteLine(SafeJson(DumpJson(Json{{"name", name},
                                                    {"description", preset.description},
                                                    {"origin", users ? "user" : "shipped"},
                                                    {"hides_shipped", users && shipped},
                                                    {"path", users ? Json(preset.path) : Json()},
                                                    {"variables", std::move(variables)},
                                                    {"text", preset.text}})));
  return 0;
}

// Deletes users' files. Deletes none if one of them does not exist.
int Remove(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    CheckPresetName(name);
    struct stat status {};
    if (lstat(PresetPath(name).c_str(), &status) == 0) continue;
    if (ShippedPresetText(name)) {
      throw RequestError("preset " + name + ": ships with vllmcli and cannot be deleted",
                         "vllmcli presets edit " + name + " makes a file of yours that hides it");
    }
    throw RequestError("preset " + name + ": there is none", "vllmcli presets list shows the presets");
  }
  for (const std::string& name : names) {
    const std::string path = PresetPath(name);
    if (unlink(path.c_str()) != 0) throw ResourceError("cannot delete " + Escape(path) + ": " + std::strerror(errno));
    if (ShippedPresetText(name)) PrintStatus(name + " is the shipped preset again");
  }
  return 0;
}

std::string ReadDraft(const std::string& path) {
  std::string text;
  const tokenizer::RegularFile file = tokenizer::ReadRegularFile(path, kMaxDraftBytes, text);
  if (!file.ok()) throw ConfigError("preset draft " + Escape(path) + ": " + file.error);
  return text;
}

// Edits a copy of the preset, and replaces the preset if the copy is valid. An invalid copy remains as a draft, with
// which the next edit begins.
int Edit(const std::string& name) {
  CheckPresetName(name);
  const std::optional<std::string> users = ReadUserPreset(name);
  const std::string path = PresetPath(name);
  const std::string directory = PresetDirectory();
  if (!MakePrivateDirectory(directory)) {
    throw ResourceError("cannot create " + Escape(directory) + ": " + std::strerror(errno));
  }
  const std::string draft = directory + "/." + name + ".draft.toml";
  struct stat status {};
  const bool continues = lstat(draft.c_str(), &status) == 0;
  const std::string before = users ? *users : ShippedPresetText(name).value_or(std::string(kNewPreset));
  if (continues) {
    PrintStatus("continuing the draft that was not valid");
  } else {
    WriteNewFile(draft, before);
  }
  if (const std::string failure = RunEditor(draft); !failure.empty()) {
    if (!continues) unlink(draft.c_str());
    throw ConfigError("presets edit: " + failure + ", so nothing was changed",
                      "set VISUAL or EDITOR to choose another editor");
  }
  const std::string after = ReadDraft(draft);
  if (after == before) {
    unlink(draft.c_str());
    PrintStatus("unchanged");
    return 0;
  }
  try {
    CheckSampling(ParsePreset(name, after, draft));
  } catch (const ConfigError& error) {
    throw ConfigError(error.what(), "nothing was changed; vllmcli presets edit " + name +
                                        " continues with your text, which is in " + draft);
  }
  // A link remains a link: the file that it leads to is replaced.
  std::string target = path;
  if (char* resolved = realpath(path.c_str(), nullptr); resolved != nullptr) {
    target = resolved;
    std::free(resolved);
  }
  if (rename(draft.c_str(), target.c_str()) != 0) {
    throw ResourceError("cannot replace " + Escape(target) + ": " + std::strerror(errno) + "; your text is in " +
                        Escape(draft));
  }
  PrintStatus("stored in " + path);
  return 0;
}

}  // namespace

int PresetsCommand(const Settings& settings) {
  const std::vector<std::string>& words = settings.arguments;
  const std::string action = words.empty() ? "list" : words[0];
  const std::vector<std::string> names(words.begin() + (words.empty() ? 0 : 1), words.end());
  const bool as_json = settings.Switch("json");
  const auto expect = [&](bool is_right, const char* usage) {
    if (!is_right) throw ConfigError(std::string("presets: usage: vllmcli presets ") + usage);
  };
  if (action == "list") {
    expect(names.empty(), "list");
    return List(as_json);
  }
  if (action == "show") {
    expect(names.size() == 1, "show NAME");
    return Show(names[0], as_json);
  }
  if (action == "edit") {
    expect(names.size() == 1, "edit NAME");
    return Edit(names[0]);
  }
  if (action == "rm") {
    expect(!names.empty(), "rm NAME...");
    return Remove(names);
  }
  throw ConfigError("presets: unknown action " + Escape(action, 60) + " (known: list, show, edit, rm)",
                    "vllmcli presets show " + Escape(action, 60) + " prints one; vllmcli presets list prints all");
}

}  // namespace vllm::app
