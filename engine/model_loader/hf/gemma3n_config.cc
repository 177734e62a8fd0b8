#include "engine/model_loader/hf/gemma3n_config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "engine/model_loader/hf/gemma4_config.h"

namespace vllm {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxHeadDim = int64_t{1} << 16;
constexpr int64_t kMaxStreams = 16;
constexpr double kMaxCap = 1e6;

constexpr const char* kSparsity = "activation_sparsity_pattern";

// Returns x for which a standard normal variable is below x with probability p. REQUIRES: 0 < p < 1.
double NormalQuantile(double p) {
  double low = -10.0, high = 10.0;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2.0;
    const double below = 0.5 * std::erfc(-middle / std::numbers::sqrt2);
    (below < p ? low : high) = middle;
  }
  return low;
}

// Returns the share of gates that each layer sets to zero if they are normally distributed.
std::vector<double> ReadSparsity(const ConfigFields& fields, size_t num_layers) {
  std::vector<double> sparsity(num_layers, 0.0);
  if (!fields.Has(kSparsity)) {
    // The default of transformers.
    for (size_t i = 0; num_layers > 10 && i < 10; ++i) sparsity[i] = 0.95;
    return sparsity;
  }
  const nlohmann::json& list = fields.At(kSparsity);
  if (!list.is_array() || list.size() != num_layers) {
    fields.Fail(kSparsity, "not a list with num_hidden_layers " + std::to_string(num_layers) + " numbers");
  }
  for (size_t i = 0; i < num_layers; ++i) {
    sparsity[i] = list[i].is_number() ? list[i].get<double>() : -1.0;
    if (!(sparsity[i] >= 0.0 && sparsity[i] <= 0.9999)) {
      fields.Fail(kSparsity, "value of layer " + std::to_string(i) + " is not a number from 0 to 0.9999");
    }
  }
  return sparsity;
}

}  // namespace

void ReadGemma3n(const ConfigFields& fields, ModelConfig& config) {
  if (const auto name = fields.String("hidden_activation")) config.hidden_act = *name;
  if (fields.Bool("use_bidirectional_attention").value_or(false)) {
    fields.Reject("use_bidirectional_attention", "only causal attention is supported");
  }
  config.final_logit_softcapping = fields.PositiveDouble("final_logit_softcapping", kMaxCap);
  config.hidden_size_per_layer_input = fields.RequiredInt("hidden_size_per_layer_input", 1, kMaxHeadDim);
  config.vocab_size_per_layer_input = fields.RequiredInt("vocab_size_per_layer_input", 1, kMaxSize);
  config.altup_num_inputs = fields.RequiredInt("altup_num_inputs", 2, kMaxStreams);
  config.altup_active_idx = fields.RequiredInt("altup_active_idx", 0, config.altup_num_inputs - 1);
  config.altup_correct_scale = fields.Bool("altup_correct_scale").value_or(true);
  config.laurel_rank = fields.RequiredInt("laurel_rank", 1, kMaxSize);
}

void ReadGemma3nLayers(const ConfigFields& fields, ModelConfig& config) {
  const size_t num_layers = config.layers.size();
  fields.RequiredInt("sliding_window", 1, kMaxSize);
  const char* width = "intermediate_size";
  if (fields.Has(width) && fields.At(width).is_array()) {
    const std::vector<int64_t> widths = fields.Ints(width, 1, kMaxSize);
    if (widths.size() != num_layers) {
      fields.Fail(width, "must have num_hidden_layers " + std::to_string(num_layers) + " entries (" +
                             std::to_string(widths.size()) + ")");
    }
    for (size_t i = 0; i < num_layers; ++i) config.layers[i].intermediate_size = widths[i];
  }
  const std::vector<double> sparsity = ReadSparsity(fields, num_layers);
  for (size_t i = 0; i < num_layers; ++i) {
    // transformers converts the share to float32.
    if (sparsity[i] > 0.0) config.layers[i].gate_cutoff = NormalQuantile(static_cast<float>(sparsity[i]));
  }
  const char* shared = "num_kv_shared_layers";
  if (!ShareKV(fields.Int(shared, 0, config.num_hidden_layers).value_or(0), config)) {
    fields.Reject(shared, "a shared layer has no layer of its type before the shared ones");
  }
}

}  // namespace vllm
