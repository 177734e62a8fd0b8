#include <optional>
#include <string>
#include <vector>

#include "app/commands/models/models_actions.h"
#include "app/installed/find_model.h"
#include "app/installed/last_use.h"
#include "app/installed/remove_model.h"
#include "app/output/ask_yes_no.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

// Returns the hint of the error if the default model is not installed, and nullopt if it is.
std::optional<std::string> MissingDefault(const Settings& settings) {
  try {
    FindModel(settings.Text("model").value_or(""));
    return std::nullopt;
  } catch (const ModelError& error) {
    return error.hint();
  }
}

}  // namespace

int RemoveModelsAction(const std::vector<std::string>& names, const Settings& settings) {
  const bool asks = !settings.Switch("yes");
  if (asks && !CanAsk()) {
    throw ConfigError("models rm: needs --yes, because it can ask only on a terminal");
  }
  std::vector<RemovalPlan> plans;
  for (const std::string& name : names) plans.push_back(PlanRemoval(name, settings.Text("revision").value_or("")));
  const bool had_default = !MissingDefault(settings);
  int status = 0;
  for (const RemovalPlan& plan : plans) {
    const std::string size = SizeText(plan.bytes) + " in " + CountedText(plan.num_files, "file");
    if (asks && !AskYesNo("Remove " + plan.name + " (" + size + ")?", /*is_yes_default=*/false)) {
      status = 1;
      continue;
    }
    const int64_t bytes = Remove(plan);
    for (const ModelLocation& model : plan.models) ForgetUse(model);
    PrintStatus("removed " + plan.name + ": " + SizeText(bytes) + " freed");
  }
  if (const auto hint = MissingDefault(settings); had_default && hint) {
    PrintWarning("the default model is no longer installed; vllmcli models use NAME sets another, " + *hint);
  }
  return status;
}

}  // namespace vllm::app
