#include "engine/model_loader/gguf/gemma3n.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/model_loader/hf/gemma4_config.h"

namespace vllm {
namespace {

constexpr int64_t kMaxHeadDim = int64_t{1} << 16;
constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxStreams = 16;
// What llama.cpp assumes for files without the keys. All published models have these values.
constexpr double kDefaultSoftcap = 30.0;
constexpr int64_t kDefaultLayersWithKV = 20;
constexpr size_t kDefaultSparseLayers = 10;
constexpr double kDefaultCutoff = 1.6448533535003662;  // 95 % of the gates become 0
constexpr int64_t kDefaultLaurelRank = 64;

std::string Key(const char* name) { return std::string("gemma3n.") + name; }

// Returns the first dimension of a matrix, or `missing` if the file has no tensors.
int64_t NumRows(const GgufFile& file, const char* name, int64_t missing) {
  if (file.tensors().empty()) return missing;
  const std::string object = std::string("tensor ") + name;
  const GgufTensor* tensor = file.Find(name);
  if (tensor == nullptr) file.metadata().Fail(object, "missing");
  if (tensor->shape.size() != 2 || tensor->shape[0] > kMaxSize) {
    file.metadata().Fail(object, "must be a matrix of at most 2^24 rows");
  }
  return tensor->shape[0];
}

void ReadSparseGates(const GgufMetadata& keys, ModelConfig& config) {
  const std::string key = Key("activation_sparsity_scale");
  if (!keys.IsArray(key)) {
    for (size_t i = 0; i < std::min(kDefaultSparseLayers, config.layers.size()); ++i) {
      config.layers[i].gate_cutoff = kDefaultCutoff;
    }
    return;
  }
  const std::vector<float> cutoffs = keys.Floats(key);
  if (cutoffs.size() < config.layers.size()) keys.Fail(key, "fewer entries than block_count");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (std::isnan(cutoffs[i]) || cutoffs[i] > 10.0F) {
      keys.Fail(key, "value of layer " + std::to_string(i) + " is not a number of at most 10");
    }
    // The quantile of layers without sparse gates is minus infinity.
    if (std::isfinite(cutoffs[i])) config.layers[i].gate_cutoff = cutoffs[i];
  }
}

}  // namespace

void ReadGgufGemma3n(const GgufFile& file, ModelConfig& config) {
  const GgufMetadata& keys = file.metadata();
  if (!config.final_logit_softcapping) config.final_logit_softcapping = kDefaultSoftcap;
  config.hidden_size_per_layer_input = keys.RequiredInt(Key("embedding_length_per_layer_input"), 1, kMaxHeadDim);
  config.vocab_size_per_layer_input = NumRows(file, "per_layer_token_embd.weight", config.vocab_size);
  config.altup_num_inputs = keys.RequiredInt(Key("altup.num_inputs"), 2, kMaxStreams);
  config.altup_active_idx = keys.RequiredInt(Key("altup.active_idx"), 0, config.altup_num_inputs - 1);
  config.altup_correct_scale = true;
  config.laurel_rank = NumRows(file, "blk.0.laurel_l.weight", kDefaultLaurelRank);
  ReadSparseGates(keys, config);
  const auto num_layers = static_cast<int64_t>(config.layers.size());
  const std::string shared_key = Key("attention.shared_kv_layers");
  const int64_t default_shared = std::max<int64_t>(num_layers - kDefaultLayersWithKV, 0);
  const int64_t num_shared = keys.Int(shared_key, 0, num_layers).value_or(default_shared);
  if (!ShareKV(num_shared, config)) {
    keys.Fail(shared_key,
              "a shared layer has no layer of its type before the shared ones (" + std::to_string(num_shared) + ")");
  }
}

}  // namespace vllm
