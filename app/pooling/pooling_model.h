// PoolingModel: a loaded model that gives vectors or scores. Owned by a command; main thread.
#pragma once

#include <optional>

#include "app/cli/settings.h"
#include "app/model/load_model.h"
#include "app/pooling/pooling_prompts.h"

namespace vllm::app {

class PoolingModel {
 public:
  // Loads the model of the settings. With `scores_pairs`, a language model whose name contains "rerank" is asked
  // whether a document answers a query, as Qwen3-Reranker is. Throws as LoadModel and PoolingPrompts do, and
  // ConfigError if --dimensions does not fit the model.
  PoolingModel(const Settings& settings, bool scores_pairs);

  LLMEngine& engine() { return *model_.engine; }
  const ModelLocation& location() const { return model_.location; }
  PoolingPrompts& prompts() { return *prompts_; }

 private:
  LoadedModel model_;
  std::optional<PoolingPrompts> prompts_;
};

// Changes how texts become vectors, and asks a reranker that is a language model for scores, as PoolingModel does.
void AdjustPooling(const Settings& settings, bool scores_pairs, const ModelLocation& location, ModelConfig& model);

}  // namespace vllm::app
