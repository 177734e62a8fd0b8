#include "engine/model_loader/gguf/gemma4.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "engine/config/escape.h"
#include "engine/model_loader/hf/gemma4_config.h"

namespace vllm {
namespace {

constexpr int64_t kMaxHeads = 1024;
constexpr int64_t kMaxHeadDim = int64_t{1} << 16;
constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr double kMaxTheta = 1e15;
constexpr float kMaxFactor = 1e6F;
// llama.cpp's divisor for pairs of dimensions that do not rotate.
constexpr float kNoRotation = 1e30F;

class Gemma4Reader {
 public:
  Gemma4Reader(const GgufFile& file, ModelConfig& config) : file_(file), keys_(file.metadata()), config_(config) {}

  void Read() {
    ReadHeads();
    const std::vector<int64_t> widths = PerLayer("feed_forward_length", 1, kMaxSize);
    for (size_t i = 0; i < widths.size(); ++i) config_.layers[i].intermediate_size = widths[i];
    const auto num_layers = static_cast<int64_t>(config_.layers.size());
    const std::string shared_key = Key("attention.shared_kv_layers");
    const int64_t num_shared = keys_.Int(shared_key, 0, num_layers).value_or(0);
    if (!ShareKV(num_shared, config_)) {
      keys_.Fail(shared_key,
                 "a shared layer has no layer of its type before the shared ones (" + std::to_string(num_shared) + ")");
    }
    for (size_t i = 0; i < config_.layers.size(); ++i) {
      const bool has_values = file_.Find("blk." + std::to_string(i) + ".attn_v.weight") != nullptr;
      config_.layers[i].values_are_keys = !has_values && !file_.tensors().empty();
    }
    config_.hidden_size_per_layer_input =
        keys_.Int(Key("embedding_length_per_layer_input"), 0, kMaxHeadDim).value_or(0);
    config_.vocab_size_per_layer_input = config_.hidden_size_per_layer_input > 0 ? config_.vocab_size : 0;
    ReadRope();
  }

 private:
  std::string Key(std::string_view name) const { return "gemma4." + std::string(name); }

  // Reads a number, or an array with one number per layer.
  std::vector<int64_t> PerLayer(std::string_view name, int64_t low, int64_t high) const {
    const std::string key = Key(name);
    if (!keys_.IsArray(key)) return std::vector<int64_t>(config_.layers.size(), keys_.RequiredInt(key, low, high));
    const std::vector<int32_t> values = keys_.Ints(key);
    if (values.size() < config_.layers.size()) keys_.Fail(key, "fewer entries than block_count");
    for (const int32_t value : values) {
      if (value >= low && value <= high) continue;
      keys_.Fail(key,
                 "outside " + std::to_string(low) + " to " + std::to_string(high) + " (" + std::to_string(value) + ")");
    }
    return {values.begin(), values.begin() + static_cast<int64_t>(config_.layers.size())};
  }

  int64_t HeadDim(const char* key_length, const char* value_length) const {
    const std::string key = Key(key_length);
    const int64_t head_dim = keys_.RequiredInt(key, 2, kMaxHeadDim);
    if (head_dim % 2 != 0) keys_.Fail(key, "head dimension is not even (" + std::to_string(head_dim) + ")");
    const int64_t values = keys_.Int(Key(value_length), 1, kMaxHeadDim).value_or(head_dim);
    if (values == head_dim) return head_dim;
    keys_.Fail(Key(value_length), "is " + std::to_string(values) + " but must equal the head dimension of the keys");
  }

  void ReadHeads() {
    config_.global_head_dim = HeadDim("attention.key_length", "attention.value_length");
    config_.head_dim = HeadDim("attention.key_length_swa", "attention.value_length_swa");
    const char* name = "attention.head_count_kv";
    const std::vector<int64_t> kv_heads = PerLayer(name, 1, kMaxHeads);
    for (size_t i = 0; i < kv_heads.size(); ++i) {
      if (config_.num_attention_heads % kv_heads[i] != 0) {
        keys_.Fail(Key(name), "does not divide attention.head_count " + std::to_string(config_.num_attention_heads) +
                                  " (" + std::to_string(kv_heads[i]) + ")");
      }
      const bool is_full = config_.layers[i].sliding_window == 0;
      (is_full ? config_.num_global_key_value_heads : config_.num_key_value_heads) = kv_heads[i];
    }
    for (size_t i = 0; i < kv_heads.size(); ++i) {
      if (kv_heads[i] == config_.NumKVHeads(config_.layers[i])) continue;
      keys_.Fail(Key(name), "values that differ between layers of one type are not supported");
    }
  }

  void ReadRope() {
    config_.rope_theta = keys_.PositiveDouble(Key("rope.freq_base"), kMaxTheta).value_or(1e6);
    config_.rope_local_theta = keys_.PositiveDouble(Key("rope.freq_base_swa"), kMaxTheta).value_or(1e4);
    config_.rotary_dim = config_.head_dim;
    for (LayerConfig& layer : config_.layers) layer.use_local_rope = layer.sliding_window > 0;
    CheckDimension("rope.dimension_count", config_.global_head_dim);
    CheckDimension("rope.dimension_count_swa", config_.head_dim);
    const std::string_view type = keys_.String(Key("rope.scaling.type")).value_or("none");
    if (type != "none") {
      keys_.Fail(Key("rope.scaling.type"), "scaling is not supported for this architecture (" + Escape(type, 40) + ")");
    }
    ReadFactors();
  }

  void CheckDimension(const char* name, int64_t expected) const {
    const int64_t count = keys_.Int(Key(name), 1, kMaxHeadDim).value_or(expected);
    if (count == expected) return;
    keys_.Fail(Key(name),
               "must be the head dimension " + std::to_string(expected) + " (" + std::to_string(count) + ")");
  }

  // The divisors of the frequencies in full-attention layers.
  void ReadFactors() {
    const char* name = "rope_freqs.weight";
    const std::string object = std::string("tensor ") + name;
    if (file_.tensors().empty()) return;
    const GgufTensor* tensor = file_.Find(name);
    if (tensor == nullptr) keys_.Fail(object, "missing");
    const int64_t count = config_.global_head_dim / 2;
    if (tensor->type->weight_type != kernels::WeightType::kFloat32 || tensor->shape != std::vector<int64_t>{count}) {
      keys_.Fail(object, "must have " + std::to_string(count) + " float32 values");
    }
    config_.rope_scaling.kind = RopeScaling::Kind::kFactors;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      float factor = 0.0F;
      std::memcpy(&factor, tensor->data.data() + i * sizeof(float), sizeof(float));
      if (factor != kNoRotation && !(factor > 0.0F && factor <= kMaxFactor)) {
        keys_.Fail(object, "values must be above 0 and at most 1e6, or 1e30 (" + std::to_string(factor) + ")");
      }
      config_.rope_scaling.short_factor.push_back(factor == kNoRotation ? std::numeric_limits<double>::infinity()
                                                                        : double{factor});
    }
  }

  const GgufFile& file_;
  const GgufMetadata& keys_;
  ModelConfig& config_;
};

}  // namespace

void ReadGgufGemma4(const GgufFile& file, ModelConfig& config) { Gemma4Reader(file, config).Read(); }

}  // namespace vllm
