#include "engine/model_loader/gguf/encoder.h"

#include <optional>
#include <string>
#include <utility>

namespace vllm {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxTypes = 1024;
constexpr int64_t kMaxLabels = 4096;
constexpr int64_t kMaxLayers = 1024;

std::string Architecture(const GgufMetadata& keys) {
  return std::string(keys.String("general.architecture").value_or(""));
}

// Returns the pooling type under `key`, with llama.cpp's numbers, or nullopt if it is missing or is "none" or "rank".
std::optional<PoolingType> PoolingTypeAt(const GgufMetadata& keys, const std::string& key) {
  constexpr PoolingType kTypes[] = {PoolingType::kMean, PoolingType::kCls, PoolingType::kLast};
  const int64_t type = keys.Int(key, 0, 4).value_or(0);
  if (type < 1 || type > 3) return std::nullopt;
  return kTypes[type - 1];
}

// Returns the tensor, which must be a matrix whose rows have hidden_size elements, or null if it is missing.
const GgufTensor* FindMatrix(const GgufFile& file, const std::string& name, int64_t columns, int64_t max_rows) {
  const GgufTensor* tensor = file.Find(name);
  if (tensor == nullptr) return nullptr;
  if (tensor->shape.size() != 2 || tensor->shape[1] != columns || tensor->shape[0] > max_rows) {
    file.metadata().Fail("tensor " + name, "must be a matrix of at most " + std::to_string(max_rows) + " rows and " +
                                               std::to_string(columns) + " columns");
  }
  return tensor;
}

PoolerDense DenseOf(const GgufFile& file, const GgufTensor& tensor, const std::string& stem, std::string name) {
  return {std::move(name), tensor.shape[1], tensor.shape[0], file.Find(stem + ".bias") != nullptr,
          PoolerActivation::kIdentity};
}

// The file of a model with learned positions has a row for each position, and only for these.
void ReadEmbeddings(const GgufFile& file, ModelConfig& config) {
  if (const GgufTensor* types = FindMatrix(file, "token_types.weight", config.hidden_size, kMaxTypes)) {
    config.type_vocab_size = types->shape[0];
  }
  if (config.model_type != "bert") return;
  const GgufTensor* positions = FindMatrix(file, "position_embd.weight", config.hidden_size, kMaxSize);
  if (positions == nullptr) {
    if (!file.tensors().empty()) file.metadata().Fail("tensor position_embd.weight", "missing");
    return;
  }
  config.max_position_embeddings = positions->shape[0];
}

// ModernBERT: every n-th layer, and the first, has full attention and the other rotary base.
void ReadModernBertLayers(const GgufMetadata& keys, ModelConfig& config) {
  const int64_t pattern = keys.Int("modern-bert.attention.sliding_window_pattern", 1, kMaxLayers).value_or(3);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool is_local = static_cast<int64_t>(i) % pattern != 0;
    config.layers[i].sliding_window = is_local ? config.sliding_window.value_or(0) : 0;
    config.layers[i].use_local_rope = is_local && config.layers[i].sliding_window > 0;
  }
}

// The layers of jina-embeddings-v2-base-code have three more norms.
void ReadJinaBert(const GgufFile& file, ModelConfig& config) {
  const GgufMetadata& keys = file.metadata();
  config.use_qk_norm = file.Find("blk.0.attn_q_norm.weight") != nullptr;
  for (const char* name : {"blk.0.attn_k_norm.weight", "blk.0.attn_norm_2.weight"}) {
    if (file.Find(name) != nullptr && !config.use_qk_norm) {
      keys.Fail("tensor " + std::string(name), "is supported only together with blk.0.attn_q_norm.weight");
    }
  }
  if (file.Find("blk.0.ffn_gate.weight") != nullptr) {
    keys.Fail("tensor blk.0.ffn_gate.weight",
              "must be part of ffn_up, as the current converter of llama.cpp writes it");
  }
  if (file.Find("cls.weight") != nullptr || file.Find("cls.output.weight") != nullptr) {
    keys.Fail("tensor cls.weight", "classifiers of JinaBERT are not supported; use the Hugging Face checkpoint");
  }
}

// nomic-embed-text-v2-moe: every n-th layer has experts, beginning with the second.
void ReadNomicBertMoe(const GgufMetadata& keys, ModelConfig& config) {
  const auto key = [](const char* name) { return "nomic-bert-moe." + std::string(name); };
  config.gated_mlp = false;
  if (config.num_experts == 0) keys.Fail(key("expert_count"), "missing");
  config.norm_topk_prob = keys.Bool(key("expert_weights_norm")).value_or(false);
  if (config.norm_topk_prob) keys.Fail(key("expert_weights_norm"), "true is not supported for this architecture");
  constexpr int64_t kSoftmax = 1;
  if (keys.Int(key("expert_gating_func"), 0, 16).value_or(kSoftmax) != kSoftmax) {
    keys.Fail(key("expert_gating_func"), "only softmax (1) is supported");
  }
  if (keys.Int(key("expert_shared_count"), 0, kMaxSize).value_or(0) != 0) {
    keys.Fail(key("expert_shared_count"), "shared experts are not supported for this architecture");
  }
  const int64_t every = keys.RequiredInt(key("moe_every_n_layers"), 2, kMaxLayers);
  for (size_t i = 0; i < config.layers.size(); ++i) config.layers[i].is_moe = static_cast<int64_t>(i) % every == 1;
}

void ReadClassifier(const GgufFile& file, ModelConfig& config) {
  const GgufMetadata& keys = file.metadata();
  const GgufTensor* output = FindMatrix(file, "cls.output.weight", config.hidden_size, kMaxLabels);
  if (output == nullptr) return;
  const GgufTensor* dense = FindMatrix(file, "cls.weight", config.hidden_size, config.hidden_size);
  if (dense == nullptr) {
    keys.Fail("tensor cls.weight",
              "missing: llama.cpp's converter leaves out the layer before the classifier of a BertModel, so the scores "
              "would be wrong; use the Hugging Face checkpoint");
  }
  const bool is_modern = config.model_type == "modernbert";
  // The layer before DistilBERT's classifier has another activation. Of the models whose files have the architecture
  // bert, only DistilBERT has no token types.
  if (!is_modern && config.type_vocab_size == 0) {
    keys.Fail("tensor cls.output.weight",
              "classifiers of DistilBERT are not supported; use the Hugging Face checkpoint");
  }
  ClassifierConfig& classifier = config.pooler.classifier.emplace();
  PoolerDense first = DenseOf(file, *dense, "cls", is_modern ? "head.dense" : "classifier.dense");
  first.activation = is_modern ? PoolerActivation::kGelu : PoolerActivation::kTanh;
  if (file.Find("cls.norm.weight") != nullptr) first.norm = "head.norm";
  if (first.out_features != config.hidden_size) {
    keys.Fail("tensor cls.weight", "must have " + std::to_string(config.hidden_size) + " rows");
  }
  classifier.layers.push_back(std::move(first));
  classifier.layers.push_back(DenseOf(file, *output, "cls.output", is_modern ? "classifier" : "classifier.out_proj"));
  classifier.num_labels = output->shape[0];
  classifier.function =
      classifier.num_labels == 1 ? ClassifierConfig::Function::kSigmoid : ClassifierConfig::Function::kSoftmax;
  const std::string key = Architecture(keys) + ".classifier.pooling_type";
  config.pooler.types = {PoolingTypeAt(keys, key).value_or(is_modern ? PoolingType::kMean : PoolingType::kCls)};
  config.pooler.is_from_files = true;
  config.architecture = is_modern ? "ModernBertForSequenceClassification" : "RobertaForSequenceClassification";
}

// The Dense modules of EmbeddingGemma, which the converter writes only on request.
void ReadDense(const GgufFile& file, ModelConfig& config) {
  int64_t columns = config.hidden_size;
  for (const std::string stem : {"dense_2", "dense_3"}) {
    const GgufTensor* tensor = FindMatrix(file, stem + ".weight", columns, kMaxSize);
    if (tensor == nullptr) continue;
    config.pooler.dense.push_back(DenseOf(file, *tensor, stem, stem));
    columns = tensor->shape[0];
  }
}

}  // namespace

bool IsGgufEncoder(std::string_view architecture) {
  for (const std::string_view name :
       {"bert", "jina-bert-v2", "nomic-bert", "nomic-bert-moe", "modern-bert", "eurobert", "gemma-embedding"}) {
    if (architecture == name) return true;
  }
  return false;
}

void ReadGgufPooling(const GgufMetadata& keys, ModelConfig& config) {
  const std::optional<PoolingType> type = PoolingTypeAt(keys, Architecture(keys) + ".pooling_type");
  if (!type) return;
  config.pooler.types = {*type};
  config.pooler.is_from_files = true;
}

void ReadGgufReranker(const GgufFile& file, ModelConfig& config) {
  const GgufMetadata& keys = file.metadata();
  const GgufTensor* output = FindMatrix(file, "cls.output.weight", config.hidden_size, kMaxLabels);
  if (output == nullptr || config.model_type != "qwen3") return;
  const std::string key = Architecture(keys) + ".classifier.output_labels";
  const std::vector<std::string_view> labels = keys.Strings(key);
  if (output->shape[0] != 2 || labels != std::vector<std::string_view>{"yes", "no"}) {
    keys.Fail(key, "must be \"yes\" and \"no\", of which cls.output.weight has one row each");
  }
  ClassifierConfig& classifier = config.pooler.classifier.emplace();
  classifier.asks_yes_or_no = true;
  classifier.layers.push_back(DenseOf(file, *output, "cls.output", "score"));
  config.pooler.types = {PoolingType::kLast};
  config.pooler.is_from_files = true;
  // The converter leaves out the output projection, unless it is the embedding.
  config.can_generate = false;
  config.tie_word_embeddings = true;
  config.architecture = "Qwen3ForSequenceClassification";
}

void ReadGgufEncoder(const GgufFile& file, ModelConfig& config) {
  const GgufMetadata& keys = file.metadata();
  config.is_encoder = true;
  config.can_generate = false;
  config.tie_word_embeddings = true;  // there is no output projection
  if (!config.pooler.is_from_files) config.pooler.types = {PoolingType::kCls};
  ReadEmbeddings(file, config);
  if (config.model_type == "jina_bert") ReadJinaBert(file, config);
  if (Architecture(keys) == "nomic-bert-moe") ReadNomicBertMoe(keys, config);
  if (config.model_type == "modernbert") {
    ReadModernBertLayers(keys, config);
    config.norm_bias = file.Find("output_norm.bias") != nullptr;
    if (const std::optional<std::string_view> act = keys.String("modern-bert.hidden_activation")) {
      config.hidden_act = *act;
    }
  }
  // Half of the window is on each side of a token.
  for (LayerConfig& layer : config.layers) {
    if (layer.sliding_window > 0) layer.sliding_window = layer.sliding_window / 2 + 1;
  }
  ReadClassifier(file, config);
  ReadDense(file, config);
}

}  // namespace vllm
