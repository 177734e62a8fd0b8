#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/commands/models/models_actions.h"
#include "app/hub/model_reference.h"
#include "app/installed/find_model.h"
#include "app/installed/list_models.h"
#include "app/installed/model_aliases.h"
#include "app/output/json_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

int List(bool as_json) {
  const std::vector<ModelAlias> aliases = ReadModelAliases();
  if (as_json) {
    Json list = Json::array();
    for (const ModelAlias& alias : aliases) list.push_back({{"name", alias.name}, {"model", alias.target}});
    StandardOutput().WriteLine(SafeJson(DumpJson(list)));
    return 0;
  }
  for (const ModelAlias& alias : aliases) StandardOutput().WriteLine(SafeLine(alias.name + "=" + alias.target));
  return 0;
}

// Throws ConfigError if `name` cannot be an alias or would hide an installed model.
void CheckName(const std::string& name) {
  if (!IsModelAliasName(name)) {
    throw ConfigError("models alias " + Escape(name, 80) +
                      ": must have 1 to 64 letters, digits, '.', '_' and '-', a letter or digit first, and be neither "
                      "guide nor the name of a .gguf file");
  }
  for (const InstalledModel& model : ListModels()) {
    if (model.location.name == name || model.location.repo_id == name) {
      throw ConfigError("models alias " + name + ": is the name of an installed model, which the alias would hide");
    }
  }
}

// Returns the model that an alias is to mean: an absolute path, or the name of a repository. Throws ConfigError.
std::string TargetOf(const std::string& name, const std::string& model) {
  struct stat status {};
  if (stat(model.c_str(), &status) == 0) return std::filesystem::absolute(model).lexically_normal().string();
  // An alias of an alias would be a chain, which could become a loop.
  if (const std::optional<std::string> target = FindModelAlias(model)) return *target;
  if (!ParseModelReference(model)) {
    throw ConfigError("models alias " + name + ": neither an existing path nor the name of a repository (" +
                      Escape(model) + ")");
  }
  return model;
}

void SetAlias(const std::string& name, const std::string& model) {
  CheckName(name);
  const std::string target = TargetOf(name, model);
  SetModelAlias(name, target);
  try {
    FindModel(target);
  } catch (const ModelError& error) {
    PrintStatus(target + " is not installed" + (error.hint().empty() ? "" : "; " + error.hint()));
  }
}

}  // namespace

int AliasAction(const std::vector<std::string>& arguments, const Settings& settings) {
  if (arguments.empty()) return List(settings.Switch("json"));
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string none = "models alias " + Escape(name, 80) + ": there is no such alias";
    if (equals == std::string::npos) {
      const std::optional<std::string> target = FindModelAlias(name);
      if (!target) throw RequestError(none, "vllmcli models alias " + Escape(name, 80) + "=MODEL makes it");
      StandardOutput().WriteLine(SafeLine(*target));
    } else if (equals + 1 < argument.size()) {
      SetAlias(name, argument.substr(equals + 1));
    } else if (!IsModelAliasName(name) || !RemoveModelAlias(name)) {
      throw RequestError(none, "vllmcli models alias lists the aliases");
    }
  }
  return 0;
}

}  // namespace vllm::app
