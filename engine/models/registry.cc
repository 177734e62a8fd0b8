#include "engine/models/registry.h"

#include <map>
#include <utility>

#include "engine/config/errors.h"

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
  throw ModelError("cannot load model " + config.model + ": unknown architecture (" + config.architecture +
                   "; known: " + known + ")");
}

std::unique_ptr<Model> BuildModel(const ModelBuildContext& context) {
  CheckArchitecture(context.config.model);
  return BuildArchitecture(context.config.model.architecture, context);
}

std::unique_ptr<Model> BuildArchitecture(std::string_view architecture, const ModelBuildContext& context) {
  return Registry().find(architecture)->second(context);
}

HeadShards ShardHeads(const ModelConfig& config, int rank, int size) {
  const int64_t heads = config.num_attention_heads;
  const int64_t kv_heads = config.num_key_value_heads;
  if (heads % size != 0) {
    throw ConfigError("--tensor-parallel-size: does not divide the model's " + std::to_string(heads) +
                      " attention heads (" + std::to_string(size) + ")");
  }
  if (kv_heads % size != 0 && size % kv_heads != 0) {
    throw ConfigError("--tensor-parallel-size: neither divides nor is a multiple of the model's " +
                      std::to_string(kv_heads) + " key-value heads (" + std::to_string(size) + ")");
  }
  HeadShards shards;
  shards.heads = {heads / size * rank, heads / size};
  shards.kv_heads =
      kv_heads >= size ? Shard{kv_heads / size * rank, kv_heads / size} : Shard{kv_heads * rank / size, 1};
  return shards;
}

}  // namespace vllm
