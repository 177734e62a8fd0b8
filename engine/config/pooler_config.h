// PoolerConfig: how a model turns the hidden states of a text into a vector or into scores. Read from the model's files
// (model_loader/pooling), then possibly changed by flags. Plain values; any thread may read its copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vllm {

// How the hidden states of all tokens become one vector. kMeanSqrtLen: the sum divided by the square root of the number
// of tokens. kWeightedMean: the token at position p has weight p + 1.
enum class PoolingType : uint8_t { kMean, kCls, kLast, kMax, kMeanSqrtLen, kWeightedMean };

// The names of sentence-transformers: "mean", "cls", "lasttoken", "max", "mean_sqrt_len_tokens", "weightedmean".
std::string_view ToString(PoolingType type);
// Also accepts "last", vLLM's name. Returns nullopt for another text.
std::optional<PoolingType> ParsePoolingType(std::string_view text);

enum class PoolerActivation : uint8_t { kIdentity, kTanh, kGelu, kGeluTanh, kRelu, kSilu, kSigmoid };

// A linear layer after pooling, y = activation(W x + b). `name`.weight is [out_features, in_features].
struct PoolerDense {
  std::string name;
  int64_t in_features = 0;
  int64_t out_features = 0;
  bool has_bias = true;
  PoolerActivation activation = PoolerActivation::kIdentity;
  std::string norm = {};  // a layer norm after the activation; empty: none
};

// The head that turns a pooled vector into scores.
struct ClassifierConfig {
  std::vector<PoolerDense> layers;  // the last one has num_labels outputs
  int64_t num_labels = 1;
  // Turns the outputs into scores: sigmoid of each, softmax of all, or neither.
  enum class Function : uint8_t { kNone, kSigmoid, kSoftmax } function = Function::kSigmoid;
  // The model is asked whether a document fits a query, as Qwen3-Reranker is. The only score is that of "yes" against
  // "no": the logit of the second token of token_pair minus that of the first, or, if there are layers, the first of
  // their two outputs minus the second.
  bool asks_yes_or_no = false;
  std::optional<std::pair<int32_t, int32_t>> token_pair = {};
};

struct PoolerConfig {
  std::vector<PoolingType> types = {PoolingType::kLast};  // the vectors are concatenated
  bool include_prompt = true;                             // if false, the mean leaves out the tokens of the prompt
  std::vector<PoolerDense> dense = {};                    // tensors of AddDenseModules
  bool normalize = true;                                  // divides the vector by its L2 norm
  int64_t truncate_dim = 0;                               // keeps this many dimensions; 0: all
  std::vector<int64_t> matryoshka_dimensions = {};        // sizes that a vector may be cut to; empty: any
  int64_t max_seq_length = 0;                             // texts are cut to this many tokens; 0: max_model_len
  bool lower_case = false;                                // texts are put into lower case
  // Texts in front of every text, by name, such as {"query", "query: "}.
  std::vector<std::pair<std::string, std::string>> prompts = {};
  std::string default_prompt_name = {};
  std::string similarity = "cosine";  // or "dot", "euclidean", "manhattan"
  std::optional<ClassifierConfig> classifier = {};
  bool is_from_files = false;  // sentence-transformers' files or the architecture decide; else these are defaults

  // Returns true if the hidden state of every token is needed, and not only that of the last one.
  bool NeedsAllTokens() const;
  // Returns the number of dimensions of the vector before `truncate_dim`.
  int64_t VectorSize(int64_t hidden_size) const;
  // Returns why a vector cannot be cut to this many dimensions, such as "outside 1 to 384 (400)", or an empty string.
  std::string DimensionsProblem(int64_t dimensions, int64_t hidden_size) const;
};

}  // namespace vllm
