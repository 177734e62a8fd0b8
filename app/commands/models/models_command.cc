#include "app/commands/models/models_command.h"

#include <string>
#include <vector>

#include "app/commands/models/models_actions.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {

int ModelsCommand(const Settings& settings) {
  const std::vector<std::string>& words = settings.arguments;
  const std::string action = words.empty() ? "list" : words[0];
  const std::vector<std::string> rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  const auto expect = [&](bool is_right, const char* usage) {
    if (!is_right) throw ConfigError(std::string("models: usage: vllmcli models ") + usage);
  };
  if (action == "list") {
    expect(rest.empty(), "list");
    return ListModelsAction(settings);
  }
  if (action == "rm") {
    expect(!rest.empty(), "rm NAME...");
    return RemoveModelsAction(rest, settings);
  }
  if (action == "alias") return AliasAction(rest, settings);
  if (action == "use") {
    expect(rest.size() == 1, "use NAME");
    return UseModelAction(rest[0], settings);
  }
  throw ConfigError("models: unknown action " + Escape(action, 60) + " (known: list, rm, alias, use)",
                    "vllmcli show MODEL describes a model; vllmcli models --help explains the actions");
}

}  // namespace vllm::app
