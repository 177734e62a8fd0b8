#include "app/pooling/pooling_prompts.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/jinja/values/letter_case.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {
namespace {

// The prompt of Qwen3-Reranker, from its model card.
constexpr std::string_view kJudgeBegin =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n";
constexpr std::string_view kJudgeEnd = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr std::string_view kJudgeInstruction =
    "Given a web search query, retrieve relevant passages that answer the query";

std::string ChooseInstruction(const Settings& settings, const PoolerConfig& pooler) {
  if (const auto text = settings.Text("instruction")) return *text;
  const auto name = settings.Text("prompt-name");
  if (!name && pooler.default_prompt_name.empty()) return "";
  const std::string& wanted = name ? *name : pooler.default_prompt_name;
  std::string known;
  for (const auto& [prompt_name, text] : pooler.prompts) {
    if (prompt_name == wanted) return text;
    known += (known.empty() ? "" : ", ") + Escape(prompt_name, 40);
  }
  throw ConfigError("--prompt-name: the model has no prompt of this name (" + Escape(wanted, 60) + "; " +
                    (known.empty() ? "it has none" : "known: " + known) + ")");
}

}  // namespace

PoolingPrompts::PoolingPrompts(const Settings& settings, const ModelConfig& model,
                               std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
    : model_(model), tokenizer_(std::move(tokenizer)), instruction_(ChooseInstruction(settings, model.pooler)) {
  if (pooler().include_prompt || instruction_.empty()) return;
  // As sentence-transformers counts them: with the special tokens before the text, without those after it.
  const tokenizer::BoundedEncoding alone = tokenizer_->EncodeBounded(instruction_, MaxTokens());
  num_instruction_tokens_ = static_cast<int64_t>(alone.ids.size());
  if (!alone.ids.empty() && tokenizer_->IsSpecial(alone.ids.back())) --num_instruction_tokens_;
}

int64_t PoolingPrompts::vector_size() const {
  const int64_t size = pooler().VectorSize(model_.hidden_size);
  return pooler().truncate_dim > 0 ? std::min(size, pooler().truncate_dim) : size;
}

size_t PoolingPrompts::MaxTokens() const {
  const int64_t limit = model_.max_model_len;
  return static_cast<size_t>(pooler().max_seq_length > 0 ? std::min(limit, pooler().max_seq_length) : limit);
}

std::string PoolingPrompts::Prepare(std::string_view text) const {
  std::string prepared = instruction_ + std::string(text);
  return pooler().lower_case ? tokenizer::jinja::ToLower(prepared) : prepared;
}

PoolingRequest PoolingPrompts::Embed(std::string_view text) {
  tokenizer::BoundedEncoding encoding = tokenizer_->EncodeBounded(Prepare(text), MaxTokens());
  num_cut_ += encoding.was_cut ? 1 : 0;
  PoolingParams params;
  params.num_instruction_tokens = num_instruction_tokens_;
  return {{std::move(encoding.ids), {}}, params};
}

PoolingRequest PoolingPrompts::Score(std::string_view query, std::string_view document) {
  PoolingRequest request;
  request.params.task = PoolingTask::kScore;
  if (!pooler().classifier->asks_yes_or_no) {
    tokenizer::BoundedEncoding pair = tokenizer_->EncodePair(query, document, MaxTokens());
    num_cut_ += pair.was_cut ? 1 : 0;
    if (model_.type_vocab_size > 1) request.prompt.token_type_ids = std::move(pair.type_ids);
    request.prompt.token_ids = std::move(pair.ids);
    return request;
  }
  const auto encode = [&](std::string_view text, bool parse_special) {
    return tokenizer_->Encode(text, /*add_special_tokens=*/false, parse_special);
  };
  std::vector<int32_t> ids = encode(kJudgeBegin, true);
  const std::vector<int32_t> end = encode(kJudgeEnd, true);
  const std::string body = "<Instruct>: " + (instruction_.empty() ? std::string(kJudgeInstruction) : instruction_) +
                           "\n<Query>: " + std::string(query) + "\n<Document>: " + std::string(document);
  // Special tokens in the texts are ordinary text, so that a document cannot end the question.
  std::vector<int32_t> middle = encode(body, false);
  const size_t room = MaxTokens() - std::min(MaxTokens(), ids.size() + end.size());
  if (middle.size() > room) {
    middle.resize(room);
    ++num_cut_;
  }
  ids.insert(ids.end(), middle.begin(), middle.end());
  ids.insert(ids.end(), end.begin(), end.end());
  request.prompt.token_ids = std::move(ids);
  return request;
}

double PoolingPrompts::Similarity(const std::vector<float>& a, const std::vector<float>& b) const {
  double dot = 0.0, squares_a = 0.0, squares_b = 0.0, manhattan = 0.0, squared_distance = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    dot += x * y;
    squares_a += x * x;
    squares_b += y * y;
    manhattan += std::abs(x - y);
    squared_distance += (x - y) * (x - y);
  }
  const std::string& name = pooler().similarity;
  if (name == "dot") return dot;
  if (name == "euclidean") return -std::sqrt(squared_distance);
  if (name == "manhattan") return -manhattan;
  return dot / std::max(std::sqrt(squares_a) * std::sqrt(squares_b), 1e-12);
}

std::string PoolingPrompts::Describe() const {
  std::string text;
  if (scores_pairs()) {
    const ClassifierConfig& classifier = *pooler().classifier;
    if (classifier.asks_yes_or_no) return "probability of \"yes\" against \"no\"";
    text = "the model's classifier";
    if (classifier.function == ClassifierConfig::Function::kNone) text += ", raw outputs";
    if (classifier.function == ClassifierConfig::Function::kSigmoid) text += ", sigmoid";
    if (classifier.function == ClassifierConfig::Function::kSoftmax) text += ", softmax";
    return text;
  }
  for (const PoolingType type : pooler().types) text += (text.empty() ? "" : " + ") + std::string(ToString(type));
  text += " pooling, " + std::string(pooler().normalize ? "" : "not ") + "normalized, " +
          std::to_string(vector_size()) + " dimensions";
  if (!instruction_.empty()) text += ", prompt " + Escape(instruction_, 60);
  if (!pooler().is_from_files) text += " (the model's files do not say how to pool; --pooling does)";
  return text;
}

void PoolingPrompts::WarnOfCutTexts() const {
  if (num_cut_ == 0) return;
  PrintWarning(std::to_string(num_cut_) + (num_cut_ == 1 ? " text was" : " texts were") + " cut to " +
               std::to_string(MaxTokens()) + " tokens, the most that the model takes");
}

}  // namespace vllm::app
