// PoolingModel: a model that gives vectors or scores, and the rules by which texts become its requests: the prompt in
// front of each text, the limit of its length, and the form of a query with a document. Owned by a command; main
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/cli/settings.h"
#include "app/model/load_model.h"
#include "engine/config/pooler_config.h"
#include "engine/request/pooling_params.h"
#include "engine/request/prompt.h"

namespace vllm::app {

struct PoolingRequest {
  PoolingPrompt prompt;
  PoolingParams params;
};

class PoolingModel {
 public:
  // Loads the model of the settings. With `scores_pairs`, a language model whose name contains "rerank" is asked
  // whether a document answers a query, as Qwen3-Reranker is. Throws as LoadModel does, and ConfigError if a flag does
  // not fit the model.
  PoolingModel(const Settings& settings, bool scores_pairs);

  LLMEngine& engine() { return *model_.engine; }
  const ModelLocation& location() const { return model_.location; }
  const PoolerConfig& pooler() const { return model_.engine->config().model.pooler; }
  int64_t vector_size() const;
  // Returns true if the model has a classifier for pairs of texts. Otherwise pairs are compared by their vectors.
  bool scores_pairs() const { return pooler().classifier.has_value(); }

  // Returns the request for the vector of a text.
  PoolingRequest Embed(std::string_view text);
  // Returns the request for the score of a document. REQUIRES: scores_pairs().
  PoolingRequest Score(std::string_view query, std::string_view document);
  // Returns the similarity of two vectors that this model's files name: cosine, dot, euclidean or manhattan. Greater
  // is more similar.
  double Similarity(const std::vector<float>& a, const std::vector<float>& b) const;

  // Says how texts become vectors or scores, such as "mean pooling, normalized, 384 dimensions".
  std::string Describe() const;
  // Prints how many texts were cut to the limit, if any.
  void WarnOfCutTexts() const;

 private:
  size_t MaxTokens() const;
  std::string Prepare(std::string_view text) const;

  LoadedModel model_;
  std::string instruction_;  // in front of every text, or of the query of a reranker
  int64_t num_instruction_tokens_ = 0;
  int64_t dimensions_ = 0;
  int64_t num_cut_ = 0;
};

}  // namespace vllm::app
