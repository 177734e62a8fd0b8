#include "app/pooling/pooling_model.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>

#include "engine/config/errors.h"

namespace vllm::app {
namespace {

bool IsReranker(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find("rerank") != std::string::npos;
}

// Changes how texts become vectors according to the flags.
void ApplyFlags(const Settings& settings, ModelConfig& model) {
  PoolerConfig& pooler = model.pooler;
  if (const auto pooling = settings.Text("pooling")) pooler.types = {*ParsePoolingType(*pooling)};
  if (settings.Has("normalize")) pooler.normalize = settings.Switch("normalize");
  if (const auto dimensions = settings.Integer("dimensions")) {
    const std::string problem = pooler.DimensionsProblem(*dimensions, model.hidden_size);
    if (!problem.empty()) throw ConfigError("--dimensions: " + problem);
    pooler.truncate_dim = *dimensions;
  }
}

int32_t RequiredToken(const tokenizer::Tokenizer& tokenizer, std::string_view token) {
  const auto id = tokenizer.TokenToId(token);
  if (!id) throw ModelError("the vocabulary has no token \"" + std::string(token) + "\", so it gives no scores");
  return *id;
}

}  // namespace

void AdjustPooling(const Settings& settings, bool scores_pairs, const ModelLocation& location, ModelConfig& model) {
  ApplyFlags(settings, model);
  const bool asks = scores_pairs && !model.pooler.classifier && model.can_generate && !model.pooler.is_from_files &&
                    IsReranker(location.name);
  if (!asks) return;
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer = LoadModelTokenizer(location);
  ClassifierConfig& classifier = model.pooler.classifier.emplace();
  classifier.asks_yes_or_no = true;
  classifier.token_pair = {RequiredToken(*tokenizer, "no"), RequiredToken(*tokenizer, "yes")};
  model.pooler.types = {PoolingType::kLast};
}

PoolingModel::PoolingModel(const Settings& settings, bool scores_pairs) {
  LoadOptions options;
  options.needs_generation = false;
  options.adjust_model = [&](const ModelLocation& location, ModelConfig& model) {
    AdjustPooling(settings, scores_pairs, location, model);
  };
  model_ = LoadModel(settings, options);
  prompts_.emplace(settings, model_.engine->config().model, model_.tokenizer);
}

}  // namespace vllm::app
