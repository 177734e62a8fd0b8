#include "app/model/lora/lora_setting.h"

#include <algorithm>
#include <string>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/lora/load_adapter.h"

namespace vllm::app {

LoRAConfig MakeLoRAConfig(const Settings& settings, const ModelConfig& model) {
  LoRAConfig config;
  config.max_lora_rank = settings.Integer("max-lora-rank").value_or(config.max_lora_rank);
  const std::vector<std::string> values = settings.Texts("lora");
  if (values.empty() || !settings.Switch("enable-lora")) return config;
  std::string names;
  const auto is_known = [&](const std::string& name) {
    return std::any_of(config.adapters.begin(), config.adapters.end(),
                       [&](const auto& adapter) { return adapter->name == name; });
  };
  for (const std::string& value : values) {
    const size_t equals = value.find('=');
    if (equals == std::string::npos) {
      config.default_lora = value;
      continue;
    }
    const std::string name = value.substr(0, equals), path = value.substr(equals + 1);
    if (name.empty() || path.empty()) throw ConfigError("--lora: must be NAME=PATH or NAME (" + Escape(value) + ")");
    if (is_known(name)) throw ConfigError("--lora: two adapters have the same name (" + Escape(name) + ")");
    config.adapters.push_back(LoadLoRAAdapter(name, path, model, config.max_lora_rank));
    names += (names.empty() ? "" : ", ") + Escape(name);
  }
  if (!config.default_lora.empty() && !is_known(config.default_lora)) {
    throw ConfigError("--lora: no adapter has this name (" + Escape(config.default_lora) + "; " +
                          (names.empty() ? "none are loaded" : "loaded: " + names) + ")",
                      "Load an adapter with --lora NAME=PATH.");
  }
  if (!config.default_lora.empty() || settings.command == Command::kBatch) {
    if (config.default_lora.empty() && config.adapters.size() == 1) config.default_lora = config.adapters[0]->name;
    return config;
  }
  if (config.adapters.size() > 1) {
    throw ConfigError("--lora: choose one of the adapters (" + names + ")", "Add --lora NAME.");
  }
  config.default_lora = config.adapters[0]->name;
  return config;
}

}  // namespace vllm::app
