#include "engine/models/registry.h"

#include <map>
#include <utility>

#include "engine/config/errors.h"
#include "engine/model_loader/escape.h"

namespace vllm {

namespace {

std::map<std::string, ModelFactory, std::less<>>& Registry() {
  static std::map<std::string, ModelFactory, std::less<>> registry;
  return registry;
}

}  // namespace

ModelRegistration::ModelRegistration(std::string architecture, ModelFactory factory) {
  Registry()[std::move(architecture)] = std::move(factory);
}

std::vector<std::string> KnownArchitectures() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : Registry()) names.push_back(name);
  return names;
}

bool IsKnownArchitecture(std::string_view architecture) { return Registry().contains(architecture); }

void CheckArchitecture(const ModelConfig& config) {
  if (IsKnownArchitecture(config.architecture)) return;
  std::string known;
  for (const std::string& name : KnownArchitectures()) known += (known.empty() ? "" : ", ") + name;
  throw ModelError("cannot load model " + Escape(config.model) + ": unknown architecture (" +
                   Escape(config.architecture, 60) + "; known: " + known + ")");
}

std::unique_ptr<Model> BuildModel(const ModelBuildContext& context) {
  CheckArchitecture(context.config.model);
  return BuildArchitecture(context.config.model.architecture, context);
}

std::unique_ptr<Model> BuildArchitecture(std::string_view architecture, const ModelBuildContext& context) {
  return Registry().find(architecture)->second(context);
}

}  // namespace vllm
