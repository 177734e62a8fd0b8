#include "app/model/lora/lora_setting.h"

#include <string>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/lora/load_adapter.h"

namespace vllm::app {

std::pair<std::string, std::string> ParseLoRA(const std::string& value, const std::string& what) {
  const size_t equals = value.find('=');
  if (equals == std::string::npos) return {value, ""};
  const std::pair<std::string, std::string> parsed = {value.substr(0, equals), value.substr(equals + 1)};
  if (parsed.first.empty() || parsed.second.empty()) {
    throw ConfigError(what + ": must be NAME=PATH or NAME (" + Escape(value) + ")");
  }
  return parsed;
}

LoRAConfig MakeLoRAConfig(const Settings& settings, const ModelConfig& model, const AdapterLocator& locate) {
  LoRAConfig config;
  config.max_lora_rank = settings.Integer("max-lora-rank").value_or(config.max_lora_rank);
  config.max_cpu_loras = settings.Integer("max-cpu-loras").value_or(config.max_cpu_loras);
  const std::vector<std::string> values = settings.Texts("lora");
  if (values.empty() || !settings.Switch("enable-lora")) return config;
  const auto is_known = [&](const std::string& name) { return SlotOf(config.adapters, name) >= 0; };
  for (const std::string& value : values) {
    const auto [name, path] = ParseLoRA(value, "--lora");
    if (path.empty()) {
      config.default_lora = name;
      continue;
    }
    if (is_known(name)) throw ConfigError("--lora: two adapters have the same name (" + Escape(name) + ")");
    config.adapters.push_back(LoadLoRAAdapter(name, locate(path), model, config.max_lora_rank));
  }
  const std::string names = AdapterNames(config.adapters);
  if (!config.default_lora.empty() && !is_known(config.default_lora)) {
    throw ConfigError("--lora: no adapter has this name (" + Escape(config.default_lora) + "; loaded: " + names + ")",
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
