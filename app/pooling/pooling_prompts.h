// PoolingPrompts: the rules by which texts become requests for vectors and scores: the prompt in front of each text,
// the limit of its length, and the form of a query with a document. Owned by PoolingModel or by the batch command; main
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/settings.h"
#include "engine/config/model_config.h"
#include "engine/request/pooling_params.h"
#include "engine/request/prompt.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

struct PoolingRequest {
  PoolingPrompt prompt;
  PoolingParams params;
};

class PoolingPrompts {
 public:
  // `model` is the configuration that the engine uses; copied. Throws ConfigError if --prompt-name or --instruction
  // does not fit the model.
  PoolingPrompts(const Settings& settings, const ModelConfig& model,
                 std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

  const PoolerConfig& pooler() const { return model_.pooler; }
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

  ModelConfig model_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::string instruction_;  // in front of every text, or the task in the prompt of a reranker
  int64_t num_instruction_tokens_ = 0;
  int64_t num_cut_ = 0;
};

}  // namespace vllm::app
