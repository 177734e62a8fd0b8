// The registry of architectures: the name in config.json to what builds it. A family registers itself with one
// ModelRegistration at namespace scope in its own file. Filled before main, then read by any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/models/model.h"

namespace vllm {

struct ModelBuildContext {
  const VllmConfig& config;
  const WeightSource& weights;
  const RankContext& rank;
};

using ModelFactory = std::function<std::unique_ptr<Model>(const ModelBuildContext&)>;

struct ModelRegistration {
  ModelRegistration(std::string architecture, ModelFactory factory);
};

std::vector<std::string> KnownArchitectures();  // sorted
bool IsKnownArchitecture(std::string_view architecture);

// Throws ModelError naming the architecture and the known ones.
void CheckArchitecture(const ModelConfig& config);
std::unique_ptr<Model> BuildModel(const ModelBuildContext& context);
// As another architecture than the config names. REQUIRES: it is known.
std::unique_ptr<Model> BuildArchitecture(std::string_view architecture, const ModelBuildContext& context);

}  // namespace vllm
