#include "engine/models/decoder/decoder_layer.h"

#include <algorithm>
#include <cmath>

#include "engine/layers/for_each_row.h"

namespace vllm {

namespace {

// GGUF files may lack the scalar, and their names end with ".weight".
float LoadLayerScalar(const WeightSource& weights, const std::string& name) {
  if (weights.DecidesBiases() && !weights.Contains(name)) return 1.0f;
  return LoadFloats(weights, name, 1, {0, 1})[0];
}

std::unique_ptr<RecurrentMixer> MakeMixer(const LoadContext& load, const LayerSpec& spec, size_t index,
                                          const std::string& prefix) {
  const ModelConfig& model = load.config.model;
  if (spec.gated_delta_net) return std::make_unique<GatedDeltaNet>(load, model, index, prefix, *spec.gated_delta_net);
  if (spec.short_conv) return std::make_unique<ShortConv>(load, model, index, prefix, *spec.short_conv);
  if (spec.mamba2) return std::make_unique<Mamba2>(load, model, index, prefix, *spec.mamba2);
  return nullptr;
}

}  // namespace

DecoderLayer::DecoderLayer(const LoadContext& load, const DecoderSpec& decoder, const LayerSpec& spec, size_t kv_layer,
                           CachedLayers& cached, const std::string& prefix)
    : step_(load.step),
      hidden_size_(load.config.model.hidden_size),
      residual_scale_(static_cast<float>(decoder.residual_scale)),
      parallel_(spec.parallel),
      parallel_mixer_(spec.parallel_mixer) {
  if (spec.has_attention_block) MakeNorms(load, decoder, spec.attention_block, prefix, attention_norms_);
  if (spec.has_mlp_block) MakeNorms(load, decoder, spec.mlp_block, prefix, mlp_norms_);
  if (spec.has_attention_block) {
    mixer_ = MakeMixer(load, spec, cached.recurrent.size(),
                       prefix + (parallel_mixer_ ? parallel_mixer_->mixer_prefix : spec.attention_block.prefix));
  }
  if (mixer_ != nullptr) cached.recurrent.push_back(mixer_->state());
  if (spec.mla) {
    mla_.emplace(load, load.config.model, kv_layer, prefix + spec.attention_block.prefix, *spec.mla);
    cached.attention.push_back(mla_->kv_layer());
  } else if (spec.has_attention_block && (mixer_ == nullptr || parallel_mixer_)) {
    attention_.emplace(load, load.config.model, kv_layer, prefix + spec.attention_block.prefix, spec.attention);
    std::vector<KVCacheSpec>& layers = spec.attention.look_ahead > 0 ? cached.encoder : cached.attention;
    if (kv_layer == layers.size()) layers.push_back(attention_->kv_layer());
  }
  if (spec.has_mlp_block) BuildMlp(load, spec, prefix);
  if (spec.per_layer_input) per_layer_input_.emplace(load, load.config.model, prefix, *spec.per_layer_input);
  if (spec.alt_up) alt_up_.emplace(load, load.config.model, prefix, *spec.alt_up);
  if (spec.laurel) laurel_.emplace(load, load.config.model, prefix, *spec.laurel);
  if (!spec.layer_scalar.empty()) layer_scalar_ = LoadLayerScalar(load.weights, prefix + spec.layer_scalar);
}

void DecoderLayer::BuildMlp(const LoadContext& load, const LayerSpec& spec, const std::string& prefix) {
  const std::string mlp_prefix = prefix + spec.mlp_block.prefix;
  if (spec.moe) {
    moe_.emplace(load, load.config.model, mlp_prefix, *spec.moe);
  } else if (spec.parallel_experts) {
    mlp_with_experts_.emplace(load, load.config.model, prefix, mlp_prefix, spec.mlp, *spec.parallel_experts);
  } else {
    mlp_.emplace(load, load.config.model, mlp_prefix, spec.mlp);
  }
}

void DecoderLayer::MakeNorms(const LoadContext& load, const DecoderSpec& decoder, const BlockSpec& block,
                             const std::string& prefix, Norms& norms) const {
  const auto make = [&](const std::string& name, std::optional<Norm>& norm) {
    if (!name.empty()) norm.emplace(load, prefix + name, hidden_size_, decoder.norm);
  };
  make(block.in_norm, norms.in);
  make(block.out_norm, norms.out);
  make(block.sum_norm, norms.sum);
  make(block.residual_out_norm, norms.residual_out);
}

int64_t DecoderLayer::scratch_floats(int64_t num_tokens) const {
  int64_t floats = 0;
  if (attention_) floats = attention_->scratch_floats(num_tokens);
  if (mla_) floats = mla_->scratch_floats(num_tokens);
  if (mixer_ != nullptr) floats = std::max(floats, mixer_->scratch_floats(num_tokens));
  if (parallel_mixer_) floats += 2 * num_tokens * hidden_size_;
  if (mlp_) floats = std::max(floats, mlp_->scratch_floats(num_tokens));
  if (moe_) floats = std::max(floats, moe_->scratch_floats(num_tokens));
  if (mlp_with_experts_) floats = std::max(floats, mlp_with_experts_->scratch_floats(num_tokens));
  if (per_layer_input_) floats = std::max(floats, per_layer_input_->scratch_floats(num_tokens));
  if (alt_up_) floats = std::max(floats, alt_up_->scratch_floats(num_tokens));
  if (laurel_) floats = std::max(floats, laurel_->scratch_floats(num_tokens));
  return floats;
}

void DecoderLayer::Reserve(int64_t max_tokens) const {
  if (attention_) attention_->Reserve(max_tokens);
  if (mla_) mla_->Reserve(max_tokens);
  if (mixer_ != nullptr) mixer_->Reserve(max_tokens);
  if (mlp_) mlp_->Reserve(max_tokens);
  if (moe_) moe_->Reserve(max_tokens);
  if (mlp_with_experts_) mlp_with_experts_->Reserve(max_tokens);
  if (per_layer_input_) per_layer_input_->Reserve(max_tokens);
  if (alt_up_) alt_up_->Reserve(max_tokens);
  if (laurel_) laurel_->Reserve(max_tokens);
}

void DecoderLayer::Forward(const ModelInput& input, KVCache& cache, const std::vector<RotaryAngles>& tables,
                           LayerScratch& scratch, float* hidden) {
  if (alt_up_) return ForwardStreams(input, cache, tables, scratch, hidden);
  const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
  auto* normed = scratch.normed.as<float>();
  auto* delta = scratch.delta.as<float>();
  auto* inner = scratch.inner.as<float>();
  const float* x = hidden;
  const auto norm_input = [&](const Norms& norms) {
    if (!norms.in) return;
    norms.in->Forward(hidden, num_tokens, normed);
    x = normed;
  };
  if (has_attention_block()) {
    norm_input(attention_norms_);
    Mix(input, cache, tables, x, inner, delta);
  }
  if (parallel_) {
    // This norm reads the hidden states without attention's output, so run it before AddDelta.
    norm_input(mlp_norms_);
    AddDelta(attention_norms_, num_tokens, delta, hidden);
  } else {
    if (has_attention_block()) AddDelta(attention_norms_, num_tokens, delta, hidden);
    x = hidden;
    norm_input(mlp_norms_);
  }
  if (has_mlp()) {
    RunMlp(input, x, hidden, inner, delta);
    AddDelta(mlp_norms_, num_tokens, delta, hidden);
  }
  if (per_layer_input_) {
    per_layer_input_->Forward(scratch.per_layer_inputs.as<float>(), hidden, num_tokens, inner, delta, input.lora_slots);
    ForEachRow(step_, num_tokens, hidden_size_, [&](int64_t row) {
      step_.kernels->add(hidden + row * hidden_size_, delta + row * hidden_size_, hidden_size_);
    });
  }
  if (layer_scalar_ == 1.0f) return;
  ForEachRow(step_, num_tokens, hidden_size_,
             [&](int64_t row) { step_.kernels->scale(hidden + row * hidden_size_, layer_scalar_, hidden_size_); });
}

void DecoderLayer::Mix(const ModelInput& input, KVCache& cache, const std::vector<RotaryAngles>& tables, const float* x,
                       float* scratch, float* out) {
  const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
  if (parallel_mixer_) {
    MixBoth(input, cache, tables, x, scratch, out);
  } else if (attention_) {
    attention_->Forward(input.attention, cache, tables, x, num_tokens, scratch, out, input.lora_slots);
  } else if (mla_) {
    mla_->Forward(input.attention, cache, tables, x, num_tokens, scratch, out, input.lora_slots);
  } else {
    mixer_->Forward(input.recurrent, cache, x, num_tokens, scratch, out, input.lora_slots);
  }
}

void DecoderLayer::MixBoth(const ModelInput& input, KVCache& cache, const std::vector<RotaryAngles>& tables,
                           const float* x, float* scratch, float* out) {
  const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
  float* const scaled = scratch;  // [num_tokens, hidden_size]
  float* const mixed = scaled + num_tokens * hidden_size_;
  float* const inner = mixed + num_tokens * hidden_size_;
  const auto scale = [&](double factor, const float* from, float* to) {
    ForEachRow(step_, num_tokens, hidden_size_, [&](int64_t row) {
      float* const own = to + row * hidden_size_;
      if (from != to) std::copy_n(from + row * hidden_size_, hidden_size_, own);
      if (factor != 1.0) step_.kernels->scale(own, static_cast<float>(factor), hidden_size_);
    });
  };
  scale(parallel_mixer_->mixer_in, x, scaled);
  mixer_->Forward(input.recurrent, cache, scaled, num_tokens, inner, mixed, input.lora_slots);
  scale(parallel_mixer_->attention_in, x, scaled);
  attention_->Forward(input.attention, cache, tables, scaled, num_tokens, inner, out, input.lora_slots);
  scale(parallel_mixer_->attention_out, out, out);
  ForEachRow(step_, num_tokens, hidden_size_, [&](int64_t row) {
    step_.kernels->add_scaled(out + row * hidden_size_, mixed + row * hidden_size_,
                              static_cast<float>(parallel_mixer_->mixer_out), hidden_size_);
  });
}

void DecoderLayer::ForwardStreams(const ModelInput& input, KVCache& cache, const std::vector<RotaryAngles>& tables,
                                  LayerScratch& scratch, float* streams) {
  const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
  auto* normed = scratch.normed.as<float>();
  auto* delta = scratch.delta.as<float>();
  auto* inner = scratch.inner.as<float>();
  auto* activated = scratch.activated.as<float>();
  auto* laurel = scratch.laurel.as<float>();
  alt_up_->Predict(num_tokens, normed, inner, streams);
  const float* active = alt_up_->Active(streams, num_tokens);
  attention_norms_.in->Forward(active, num_tokens, normed);
  laurel_->Forward(normed, num_tokens, inner, laurel, input.lora_slots);
  Mix(input, cache, tables, normed, inner, delta);
  std::copy_n(active, num_tokens * hidden_size_, activated);
  AddDelta(attention_norms_, num_tokens, delta, activated);
  ForEachRow(step_, num_tokens, 2 * hidden_size_, [&](int64_t row) {
    float* x = activated + row * hidden_size_;
    step_.kernels->add(x, laurel + row * hidden_size_, hidden_size_);
    step_.kernels->scale(x, std::sqrt(0.5f), hidden_size_);
  });
  mlp_norms_.in->Forward(activated, num_tokens, normed);
  RunMlp(input, normed, activated, inner, delta);
  AddDelta(mlp_norms_, num_tokens, delta, activated);
  alt_up_->Correct(activated, num_tokens, normed, inner, streams);
  alt_up_->ScaleOutput(num_tokens, streams, activated);
  per_layer_input_->Forward(scratch.per_layer_inputs.as<float>(), activated, num_tokens, inner, delta,
                            input.lora_slots);
  alt_up_->AddToOthers(delta, num_tokens, streams);
}

void DecoderLayer::RunMlp(const ModelInput& input, const float* x, const float* hidden, float* scratch, float* out) {
  const auto num_tokens = static_cast<int64_t>(input.token_ids.size());
  if (mlp_with_experts_) {
    mlp_with_experts_->Forward(x, hidden, num_tokens, scratch, out, input.lora_slots);
  } else if (moe_) {
    moe_->Forward(x, num_tokens, scratch, out, input.lora_slots);
  } else {
    mlp_->Forward(x, num_tokens, scratch, out, input.lora_slots);
  }
}

void DecoderLayer::AddDelta(const Norms& norms, int64_t num_tokens, float* delta, float* hidden) const {
  ForEachRow(step_, num_tokens, hidden_size_, [&](int64_t row) {
    float* x = hidden + row * hidden_size_;
    float* y = delta + row * hidden_size_;
    if (norms.out) norms.out->Row(y, y);
    if (norms.residual_out) {
      step_.kernels->add(y, x, hidden_size_);
      norms.residual_out->Row(y, y);
    }
    if (residual_scale_ == 1.0f) {
      step_.kernels->add(x, y, hidden_size_);
    } else {
      step_.kernels->add_scaled(x, y, residual_scale_, hidden_size_);
    }
    if (norms.sum) norms.sum->Row(x, x);
  });
}

}  // namespace vllm
